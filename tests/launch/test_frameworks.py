"""Results in kind: torch in torch out, jax in jax out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.launch.kernels import doubled, doubled_in_place, scaled


def copied(x: Any, dtype: Any = None) -> Any:
    out = nl.ndarray(x.shape, dtype=dtype or x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


def refusal(kernel: Any, *args: Any) -> nkitools.Finding:
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *args)
    return raised.value.finding


class TestJax:
    """jax arrays have no memory that a kernel could write into."""

    @pytest.fixture
    def jnp(self) -> Any:
        return pytest.importorskip("jax.numpy")

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float8_e4m3", "bool"])
    def test_results_are_jax_arrays(self, jnp: Any, dtype: str) -> None:
        """Of the kernel's dtype, bfloat16 and float8 included."""
        x = jnp.arange(32).reshape(8, 4).astype(dtype)
        out = nkitools.simulate(copied, x).outputs
        assert isinstance(out, type(x))
        assert out.dtype == x.dtype
        assert (out == x).all()

    def test_writing_into_one_is_refused(self, jnp: Any) -> None:
        """The array would not show it."""
        x = jnp.ones((8, 4))
        finding = refusal(doubled_in_place, x)
        assert (finding.rule, "`x`" in finding.message) == ("NK609", True)
        assert (x == 1).all()

    def test_a_returned_input_is_the_same_object(self, jnp: Any) -> None:
        """Untouched, it is what it was."""
        x = jnp.ones((8, 4))
        assert nkitools.simulate(lambda x: x, x).outputs is x

    def test_a_traced_value_is_refused(self, jnp: Any) -> None:
        """A kernel under jax.jit would see no elements."""
        import jax

        with pytest.raises(nkitools.KernelError, match="jax is tracing"):
            jax.jit(lambda x: nkitools.simulate(doubled, x).outputs)(jnp.ones((8, 4)))

    def test_a_packed_result_is_refused(self, jnp: Any) -> None:
        """jax has no packed dtypes."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, dtype=nl.float8_e4m3fn_x4, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape, dtype=nl.float8_e4m3fn_x4)
            nisa.memset(tile, 0)
            nisa.dma_copy(dst=out, src=tile)
            return out

        assert (
            refusal(kernel, jnp.ones((8, 4))).message == "the kernel returns float8_e4m3fn_x4, which jax does not have"
        )

    def test_numpy_arrays_beside_jax_arrays_are_updated_in_place(self, jnp: Any) -> None:
        """One jax argument makes the results jax's; a NumPy argument stays the caller's."""
        cache = np.ones((8, 4), np.float32)

        def kernel(x: Any, cache: Any) -> Any:
            return doubled(x), doubled_in_place(cache)

        out, same = nkitools.simulate(kernel, jnp.ones((8, 4)), cache).outputs
        assert not isinstance(out, np.ndarray)
        assert same is cache
        np.testing.assert_array_equal(cache, 2)


class TestTorch:
    """torch tensors on CPU share their memory with the kernel."""

    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    @pytest.mark.parametrize(
        "dtype", ["float32", "bfloat16", "float16", "int8", "uint8", "int32", "bool", "float8_e5m2", "float8_e4m3fn"]
    )
    def test_results_are_torch_tensors(self, torch: Any, dtype: str) -> None:
        """Of the kernel's dtype."""
        x = torch.arange(32).reshape(8, 4).to(getattr(torch, dtype))
        out = nkitools.simulate(copied, x, chip="trn3").outputs
        assert (type(out), out.dtype) == (torch.Tensor, x.dtype)
        assert torch.equal(out.to(torch.float32), x.to(torch.float32))

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    @pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[:, ::2]])
    def test_what_is_written_is_in_the_tensor(self, torch: Any, dtype: str, view: Any) -> None:
        """Contiguous or not; a returned input is the same object."""
        base = torch.ones((8, 8), dtype=getattr(torch, dtype))
        x = view(base)
        assert nkitools.simulate(doubled_in_place, x).outputs is x
        assert torch.equal(x, 2 * torch.ones_like(x))

    def test_parameters_that_want_gradients_are_taken(self, torch: Any) -> None:
        """The simulator computes values, no gradients."""
        x = torch.nn.Parameter(torch.ones((8, 4)))
        out = nkitools.simulate(doubled, x).outputs
        assert not out.requires_grad
        assert torch.equal(out, 2 * torch.ones((8, 4)))

    def test_an_expanded_tensor_cannot_be_written(self, torch: Any) -> None:
        """Its elements share their memory."""
        assert refusal(doubled_in_place, torch.ones((1, 4)).expand(8, 4)).rule == "NK609"

    @pytest.mark.parametrize(
        ("make", "rule", "said"),
        [
            (lambda torch: torch.ones((8, 4), dtype=torch.float64), "NK301", "argument `x` is an array of float64"),
            (lambda torch: torch.ones((8, 4), dtype=torch.float8_e4m3fnuz), "NK301", "argument `x` is a torch tensor"),
            (lambda torch: torch.ones((8, 4), device="meta"), "NK609", "argument `x` is a torch tensor on device meta"),
            (lambda torch: torch.ones((8, 4)).to_sparse(), "NK609", "argument `x` is a torch tensor of layout"),
            (lambda torch: torch.tensor(1.0), "NK609", "argument `x` is an array without dimensions"),
        ],
    )
    def test_what_the_simulator_cannot_take_is_refused(self, torch: Any, make: Any, rule: str, said: str) -> None:
        """By the argument's name."""
        finding = refusal(doubled, make(torch))
        assert finding.rule == rule
        assert finding.message.startswith(said)

    def test_a_dtype_that_torch_lacks_is_refused(self, torch: Any) -> None:
        """torch's float8_e4m3 is another one (fn)."""
        finding = refusal(lambda x: copied(x, nl.float8_e4m3), torch.ones((8, 4)))
        assert finding.message == "the kernel returns float8_e4m3, which torch does not have"


def test_a_numpy_number_is_an_immediate() -> None:
    """It is no array: no storage, no tensor."""
    x = np.ones((8, 4), np.float32)
    np.testing.assert_array_equal(nkitools.simulate(scaled, x, np.float32(3)).outputs, 3 * x)
