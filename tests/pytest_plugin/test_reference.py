"""``run_kernel(..., reference=f)`` always compares, and says so where there is nothing to compare."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

from nkitools.comparison.form import NothingCompared

X = np.full((4, 8), 3, np.float32)


def stored(tile: Any, dtype: Any = None) -> Any:
    out = nl.ndarray(tile.shape, dtype=dtype or tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def tripled(x: Any, dtype: Any = nl.float32) -> Any:
    """Three times an array."""
    tile = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=3.0)
    return stored(result)


@nki.jit
def nan_everywhere(x: Any) -> Any:
    """NaN in the place of an array."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=float("nan"))
    return stored(tile)


@nki.jit
def returning_nothing(x: Any) -> None:
    """Load an array, and leave it."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)


@nki.jit
def two_results(x: Any) -> Any:
    """An array twice."""
    tile = nl.load(x)
    return stored(tile), stored(tile)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (lambda x: 4 * x, "32 of 32 elements differ"),
        (lambda x: np.zeros((2, 2), np.float32), r"it has the shape \[4, 8\], the reference \[2, 2\]"),
        (lambda x: np.float32(9), r"it has the shape \[4, 8\], the reference \[\]"),
        (lambda x: 9.0, r"it has the shape \[4, 8\], the reference \[\]"),
        (lambda x: (3 * x)[0], r"it has the shape \[4, 8\], the reference \[8\]"),
        (lambda x: (3 * x).astype(np.int32), "it is float32, the reference int32: let the reference return a float"),
        (lambda x: 3 * x > 0, "it is float32, the reference bool"),
        (lambda x: 3 * x + 0j, "it is float32, the reference complex64"),
        (lambda x: (3 * x).astype(str), "it is float32, the reference str"),
        (lambda x: (3 * x, x), r"the kernel returns outputs; the reference has outputs\[0\], outputs\[1\]"),
        (lambda x: None, "outputs: the kernel returns an array, the reference none"),
        (lambda x: (), "the kernel returns outputs; the reference has nothing"),
        (lambda x: np.where(x[:1] > 0, np.nan, x), "NaN in 32 elements too few|shape"),
        (lambda x: np.where(np.arange(8) == 5, np.nan, 3 * x), r"NaN in 4 elements too few, the first at \[0, 5\]"),
        (np.full((4, 8), 8, np.float32), "32 of 32 elements differ"),
    ],
)
@pytest.mark.parametrize("stated", [{}, {"rtol": 1e-6}, {"tolerance": "auto"}])
def test_what_is_not_as_the_reference_fails(run_kernel: Any, reference: Any, said: str, stated: Any) -> None:
    """Shape, kind of dtype, number of outputs, NaN and numbers, with a stated tolerance and without."""
    with pytest.raises(AssertionError, match=said):
        run_kernel(tripled, X, reference=reference, **stated)


@pytest.mark.parametrize(
    ("dtype", "reference"),
    [
        (nl.float32, lambda x: 3 * x.astype(np.float64)),
        (nl.bfloat16, lambda x: 3 * x.astype(np.float64)),
        (nl.bfloat16, lambda x: 3 * x),
        (nl.float16, lambda x: 3 * x),
        (nl.int32, lambda x: (3 * x).astype(np.int64)),
        (nl.uint8, lambda x: (3 * x).astype(np.int32)),
    ],
)
def test_a_wider_dtype_of_the_same_kind_is_right(run_kernel: Any, dtype: Any, reference: Any) -> None:
    """What is reckoned in float64 or int64 is compared by the output's dtype."""
    np.testing.assert_array_equal(run_kernel(tripled, X, dtype, reference=lambda x, dtype: reference(x)), 3 * X)


def test_nan_where_nan_belongs(run_kernel: Any) -> None:
    """Some NaN agree with NaN; ``equal_nan=False`` wants none; everywhere they compare nothing."""
    x = X.copy()
    x[1, 2] = np.nan
    run_kernel(tripled, x, reference=lambda x: 3 * x)
    with pytest.raises(AssertionError, match=r"outputs\[1, 2\] is nan, expected nan"):
        run_kernel(tripled, x, reference=lambda x: 3 * x, equal_nan=False)
    for stated in ({}, {"rtol": 1e-6}):
        with pytest.raises(NothingCompared, match="all 32 elements are NaN, in the reference too: nothing is compared"):
            run_kernel(nan_everywhere, X, reference=lambda x: np.full_like(x, np.nan), **stated)
    with pytest.raises(AssertionError, match=r"NaN in 32 elements where numbers are expected, the first at \[0, 0\]"):
        run_kernel(nan_everywhere, X, reference=lambda x: x)


def test_nothing_beside_nothing_is_an_error(run_kernel: Any) -> None:
    """A kernel that returns nothing, and a reference that returns nothing, are no comparison."""
    with pytest.raises(NothingCompared, match="returning_nothing has returned no array, and the reference neither"):
        run_kernel(returning_nothing, X, reference=lambda x: None, rtol=1e-6)
    for reference in (lambda x: x, lambda x: (x, x), lambda x: ()):
        with pytest.raises(AssertionError, match="the kernel returns"):
            run_kernel(returning_nothing, X, reference=reference)


def test_each_of_several_outputs_is_compared(run_kernel: Any) -> None:
    """The wrong one is named by its place."""
    run_kernel(two_results, X, reference=lambda x: (x, x))
    with pytest.raises(AssertionError, match=r"^outputs\[1\]: 32 of 32 elements differ"):
        run_kernel(two_results, X, reference=lambda x: (x, x + 1))
    with pytest.raises(
        AssertionError, match=r"the kernel returns outputs\[0\], outputs\[1\]; the reference has outputs"
    ):
        run_kernel(two_results, X, reference=lambda x: x)


@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0, True, "1e-3"])
@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_a_tolerance_that_allows_everything_is_refused(run_kernel: Any, name: str, value: Any) -> None:
    """A tolerance is a finite number from 0 on."""
    with pytest.raises(ValueError, match=f"{name}: must be a finite number from 0 on"):
        run_kernel(tripled, X, reference=lambda x: 3 * x, **{name: value})


def into_itself(x: Any) -> Any:
    x *= 2
    return x


@pytest.mark.parametrize("reference", [into_itself, lambda x: x, lambda x: x[:, :]])
def test_a_reference_has_copies_of_its_own(run_kernel: Any, reference: Any) -> None:
    """What it writes into its argument reaches neither the kernel nor the test, and its result is no alias."""
    x = np.ones((4, 8), np.float32)
    with pytest.raises(AssertionError, match=r"outputs\[0, 0\] is 3.0, expected [12].0"):
        run_kernel(tripled, x, reference=reference)
    np.testing.assert_array_equal(x, np.ones((4, 8)))


def test_tensors_are_compared_with_what_is_expected_of_them(run_kernel: Any) -> None:
    """By name, beside a reference and without one; a name that the kernel has not is refused."""
    right = {"result": lambda x: 3 * x}
    run_kernel(tripled, X, reference=lambda x: 3 * x, expect=right)
    np.testing.assert_array_equal(run_kernel(tripled, X, expect=right), 3 * X)
    for reference in (None, lambda x: 3 * x):
        with pytest.raises(AssertionError, match=r"result\[0, 0\] is 9, expected 6; 32 of 32 differ, in float64"):
            run_kernel(tripled, X, reference=reference, expect={"result": lambda x: 2 * x})
        with pytest.raises(ValueError, match="expect: no tensor no_such_tensor was written"):
            run_kernel(tripled, X, reference=reference, expect={"no_such_tensor": lambda x: 1 / 0})


def test_a_parameter_of_the_kernel_called_expect_is_the_kernels(run_kernel: Any) -> None:
    """It reaches the kernel."""

    def kernel(x: Any, expect: float) -> Any:
        tile = nl.load(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=expect)
        return stored(tile)

    np.testing.assert_array_equal(run_kernel(kernel, X, expect=2.0), 2 * X)


def test_a_pallas_kernel_unlike_its_reference_has_its_index_map(run_kernel: Any) -> None:
    """The run has PL211 at the block spec that mends it; a right kernel has nothing, and neither has a mended one."""
    jax = pytest.importorskip("jax")
    from jax.experimental import pallas as pl

    def double(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2

    def doubled(x: Any, swapped: bool) -> Any:
        taken = pl.BlockSpec((8, 128), (lambda i, j: (j, i)) if swapped else (lambda i, j: (i, j)))
        given = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(double, out_shape=like, grid=(2, 2), in_specs=[taken], out_specs=given)(x)

    x = np.arange(16 * 256, dtype=np.float32).reshape(16, 256)
    run_kernel(doubled, x, False, reference=lambda x, swapped: 2 * x)
    assert run_kernel.run.findings == []
    with pytest.raises(AssertionError, match="output"):
        run_kernel(doubled, x, True, reference=lambda x, swapped: 2 * x)
    (found,) = run_kernel.run.findings
    assert (found.rule, found.line) == ("PL211", doubled.__code__.co_firstlineno + 1)
    assert "with grid indices 0 and 1 exchanged in the index map of `x_ref` the outputs" in found.message
    with pytest.raises(AssertionError, match="shape"):
        run_kernel(doubled, x, True, reference=lambda x, swapped: 2 * x[:8])
    assert run_kernel.run.findings == []
