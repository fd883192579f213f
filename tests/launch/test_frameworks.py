"""Results in kind: torch in torch out, jax in jax out."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.launch.kernels import doubled, doubled_in_place, scaled
from tests.nki_versions import SINCE_0_7

pytestmark = pytest.mark.frameworks


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

        out, same = nkitools.simulate(kernel, jnp.ones((8, 4)), cache, mutates="cache").outputs
        assert not isinstance(out, np.ndarray)
        assert same is cache
        np.testing.assert_array_equal(cache, 2)

    @pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "int32", "uint8", "float8_e4m3fn"])
    def test_a_dtype_of_jax_becomes_nkis(self, jnp: Any, name: str) -> None:
        """By position, by keyword and inside of containers (NKI 0.4 release notes)."""
        seen: list[Any] = []

        def kernel(x: Any, dtype: Any, options: Any = None) -> Any:
            seen.extend((dtype, options))
            return copied(x, dtype)

        dtype = getattr(jnp, name)
        out = nkitools.simulate(kernel, jnp.ones((8, 4)), dtype, options=(dtype, 1)).outputs
        assert seen == [getattr(nl, name), (getattr(nl, name), 1)]
        assert out.dtype == dtype

    def test_one_that_nki_lacks_is_a_type_error(self, jnp: Any) -> None:
        """NK609 names the argument."""
        with pytest.raises(TypeError) as raised:
            nkitools.simulate(copied, jnp.ones((8, 4)), jnp.float64)
        finding = raised.value.finding  # type: ignore[attr-defined]
        assert finding.message == "argument `dtype` is jax's dtype float64, which NKI does not have"

    def test_what_has_no_elements_is_refused(self, jnp: Any) -> None:
        """A deleted array and a random key, by the argument's name."""
        jax = pytest.importorskip("jax")
        gone = jnp.ones((8, 4))
        gone.delete()
        assert refusal(doubled, gone).message.startswith("argument `x` is a jax array that has been deleted")
        finding = refusal(doubled, jax.random.split(jax.random.key(0), (8, 4)))
        assert finding.message.startswith("argument `x` is a jax array of key<")
        assert finding.remedy == "Pass jax.random.key_data(x)."

    def test_a_dtype_that_nki_lacks_says_how_to_convert(self, jnp: Any) -> None:
        """In jax's own words."""
        assert "x.astype(jnp.float32)" in refusal(doubled, jnp.ones((8, 4), jnp.complex64)).remedy


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
        assert nkitools.simulate(doubled_in_place, x, mutates=("x",)).outputs is x
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
            (lambda torch: torch.conj(torch.ones((8, 4), dtype=torch.complex64)), "NK609", "argument `x` is a torch"),
            (lambda torch: torch._neg_view(torch.ones((8, 4))), "NK609", "argument `x` is a torch tensor with its neg"),
            (
                lambda torch: torch.nested.nested_tensor([torch.ones(4), torch.ones(3)], layout=torch.jagged),
                "NK609",
                "argument `x` is a nested torch tensor",
            ),
            (
                lambda torch: (
                    importlib.import_module("torch._subclasses").FakeTensorMode().from_tensor(torch.ones(8, 4))
                ),
                "NK609",
                "argument `x` is a FakeTensor of torch, whose elements cannot be read: ",
            ),
        ],
    )
    def test_what_the_simulator_cannot_take_is_refused(self, torch: Any, make: Any, rule: str, said: str) -> None:
        """By the argument's name."""
        finding = refusal(doubled, make(torch))
        assert finding.rule == rule
        assert finding.message.startswith(said)

    @pytest.mark.parametrize(("dtype", "casts"), [("float64", ["float32"]), ("int64", ["int32", "float32"])])
    def test_a_dtype_that_nki_lacks_says_how_to_convert(self, torch: Any, dtype: str, casts: list[str]) -> None:
        """In torch's own words: its integers are int64 by default, which NKI has in HBM alone, and since 0.7."""
        with options.override(nki_version="0.6"):
            remedy = refusal(doubled, torch.ones((8, 4), dtype=getattr(torch, dtype))).remedy
        assert remedy.startswith(f"Convert it first: {', '.join(f'x.to(torch.{cast})' for cast in casts)}, or")

    @SINCE_0_7
    def test_integers_of_64_bits_are_refused_where_they_enter_sbuf(self, torch: Any) -> None:
        """Since NKI 0.7 an argument may have them, and a tile may not: the remedy names the dtype to compute on."""
        finding = refusal(doubled, torch.ones((8, 4), dtype=torch.int64))
        assert finding.rule == "NK301"
        assert finding.remedy.endswith("Compute on nl.int32.")

    def test_a_tensor_of_another_device_says_how_to_bring_it(self, torch: Any) -> None:
        """The remedy has the call."""
        assert refusal(doubled, torch.ones((8, 4), device="meta")).remedy == "Pass x.cpu()."

    def test_the_first_framework_beside_numpy_decides(self, torch: Any) -> None:
        """NumPy arrays too are updated where mutates= names them; results are torch's, also in containers."""
        cache = np.ones((8, 4), np.float32)

        def kernel(cache: Any, x: Any) -> Any:
            return {"out": doubled(x)}, [doubled_in_place(cache)]

        given, same = nkitools.simulate(kernel, cache, torch.ones((8, 4)), mutates=("cache",)).outputs
        assert isinstance(given["out"], torch.Tensor)
        assert same[0] is cache
        np.testing.assert_array_equal(cache, 2)

    def test_torch_and_jax_side_by_side(self, torch: Any) -> None:
        """Each argument comes back as itself; what is new is of the framework that came first."""
        jnp = pytest.importorskip("jax.numpy")
        x, y = torch.ones((8, 4)), jnp.ones((8, 4))
        for first, second in ((x, y), (y, x)):
            out, *same = nkitools.simulate(lambda a, b: (doubled(b), a, b), first, second).outputs
            assert same[0] is first
            assert same[1] is second
            assert isinstance(out, torch.Tensor) == (first is x)

    def test_a_dtype_that_torch_lacks_is_refused(self, torch: Any) -> None:
        """torch's float8_e4m3 is another one (fn)."""
        finding = refusal(lambda x: copied(x, nl.float8_e4m3), torch.ones((8, 4)))
        assert finding.message == "the kernel returns float8_e4m3, which torch does not have"


def test_a_numpy_number_is_an_immediate() -> None:
    """It is no array: no storage, no tensor."""
    x = np.ones((8, 4), np.float32)
    np.testing.assert_array_equal(nkitools.simulate(scaled, x, np.float32(3)).outputs, 3 * x)
