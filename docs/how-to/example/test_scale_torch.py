import pytest

from nkitools.customop import torch_stand_in

torch = pytest.importorskip("torch")


@pytest.mark.sim
def test_scale_has_the_gradient_of_a_product():
    with torch_stand_in():
        import scale_ops

        ours = torch.linspace(-1, 1, 1001, requires_grad=True)
        theirs = ours.detach().clone().requires_grad_()
        scaled, product = scale_ops.Scale.apply(ours, 2.5), theirs * 2.5
        assert torch.equal(scaled, product)
        scaled.square().sum().backward()
        product.square().sum().backward()
        assert torch.equal(ours.grad, theirs.grad)
