"""A network trains through our ReLUs as it does through torch's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cpp_ops.relu import build  # noqa: E402 - torch decides whether this file is collected
from nkitools.customop import register_with_torch  # noqa: E402

LAYERS = (784, 4096, 2048, 10)  # those of AWS's performance tutorial
BATCH, STEPS = 32, 3


@pytest.fixture(params=build.STAGES)
def relu(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """Our ReLU as an author wraps it: two operators, one the gradient of the other."""
    name = f"relu_{request.param}"

    class Relu(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, values: Any) -> Any:
            ctx.save_for_backward(values)
            return getattr(torch.ops, name).relu_forward(values)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (values,) = ctx.saved_tensors
            return getattr(torch.ops, name).relu_backward(gradient, values)

    with register_with_torch(build.library(request.param)):
        yield Relu.apply


@pytest.fixture(scope="module")
def expected() -> tuple[list[float], list[Any]]:
    """Losses and parameters with torch's own ReLU."""
    return trained(torch.relu)


def trained(relu: Callable[[Any], Any]) -> tuple[list[float], list[Any]]:
    """The losses of three steps from one seed, and the parameters that they end with."""
    torch.manual_seed(0)
    linear = [torch.nn.Linear(one, other) for one, other in pairwise(LAYERS)]
    parameters = [parameter for layer in linear for parameter in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    losses = []
    for _ in range(STEPS):
        inputs, labels = torch.randn(BATCH, LAYERS[0]), torch.randint(0, LAYERS[-1], (BATCH,))
        hidden = relu(linear[1](relu(linear[0](inputs))))
        loss = torch.nn.functional.nll_loss(torch.log_softmax(linear[2](hidden), dim=1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach().clone() for parameter in parameters]


def test_three_steps_have_torchs_own_losses(
    relu: Callable[[Any], Any], expected: tuple[list[float], list[Any]]
) -> None:
    """784-4096-2048-10: the losses of each step are equal, and so is every parameter in the end."""
    losses, parameters = trained(relu)
    assert losses == expected[0]
    assert losses[0] != losses[-1]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(parameters, expected[1], strict=True))


@pytest.mark.parametrize("special", [float("nan"), -0.0, float("inf"), float("-inf")])
def test_special_values_are_torchs(relu: Callable[[Any], Any], special: float) -> None:
    """NaN stays NaN, forward and backward; zero has no sign."""
    values = torch.full((1, 9), special, requires_grad=True)
    theirs = torch.full((1, 9), special, requires_grad=True)
    ours, expected = relu(values), torch.relu(theirs)
    assert ours.detach().numpy().tobytes() == (expected.detach() + 0.0).numpy().tobytes()
    ours.sum().backward()
    expected.sum().backward()
    assert torch.equal(values.grad, theirs.grad)
