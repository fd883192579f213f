"""Full precision keeps the values of low-precision tensors in float32, whatever way they go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.precision.modes import BF16, both, full, loaded, run_in, stored, uniform

LOW = ["bfloat16", "float16", "tfloat32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"]


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_sum_that_bfloat16_cannot_make() -> None:
    """256 + 1 rounds to 256 in bfloat16, so ten additions add nothing; in full precision they add ten."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.bfloat16)
        for _ in range(10):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
        return stored(tile)

    precise, wide = both(kernel, np.full((4, 8), 256, BF16))
    assert (precise.dtype, wide.dtype) == (BF16, np.float32)
    np.testing.assert_array_equal(precise.astype(np.float32), 256)
    np.testing.assert_array_equal(wide, 266)


@pytest.mark.parametrize("name", LOW)
def test_every_narrower_dtype_keeps_float32(name: str) -> None:
    """On the way through a tile of any of them, in SBUF and in HBM, no digit is lost."""
    dtype, x = getattr(nl, name), uniform(8, 16)
    out = full(lambda x: stored(loaded(x, dtype)), x)
    np.testing.assert_array_equal(out, x)


def test_what_a_dtype_cannot_hold_does_not_overflow() -> None:
    """1e6 is infinite in float16 and NaN in float8_e4m3fn."""
    x = np.full((2, 2), 1e6, np.float32)
    for dtype in (nl.float16, nl.float8_e4m3fn):
        precise, wide = both(lambda x, dtype=dtype: stored(loaded(x, dtype)), x)
        assert not np.isfinite(precise.astype(np.float32)).any()
        np.testing.assert_array_equal(wide, x)


def test_integers_are_made_of_the_wide_values() -> None:
    """2.5 and a little rounds to 3, but as bfloat16 it is 2.5 and rounds to the even 2."""
    x = np.full((2, 4), 2.501, np.float32)
    precise, wide = both(lambda x: stored(loaded(loaded(x, nl.bfloat16), nl.int32)), x)
    assert (precise.dtype, wide.dtype) == (np.int32, np.int32)
    np.testing.assert_array_equal(precise, 2)
    np.testing.assert_array_equal(wide, 3)


def test_comparisons_see_the_wide_values() -> None:
    """1.001 is more than 1, but not as bfloat16."""

    def kernel(x: Any) -> Any:
        tile, flags = loaded(x, nl.bfloat16), nl.ndarray(x.shape, nl.uint8, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=flags, data=tile, op0=nl.greater, operand0=1.0)
        return stored(flags)

    precise, wide = both(kernel, np.full((2, 4), 1.001, np.float32))
    assert (precise.any(), wide.all()) == (False, True)


def test_a_number_put_into_a_tile_is_not_rounded() -> None:
    """memset writes float32's 0.1."""

    def kernel() -> Any:
        tile = nl.ndarray((2, 4), nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=0.1)
        return stored(tile)

    np.testing.assert_array_equal(full(kernel), np.float32(0.1))


# --- instructions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3"])
def test_a_matmul_of_narrow_operands_is_that_of_float32(name: str) -> None:
    """Operands that were converted on the way in are multiplied as they came."""
    dtype = getattr(nl, name)

    def kernel(left: Any, right: Any) -> Any:
        product = nl.ndarray((left.shape[1], right.shape[1]), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=loaded(left, dtype), moving=loaded(right, dtype))
        copied = nl.ndarray(product.shape, nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copied, src=product)
        return stored(copied)

    left, right = uniform(64, 16), uniform(64, 32, seed=1)
    precise, wide = both(kernel, left, right)
    expected = left.T.astype(np.float64) @ right.astype(np.float64)
    assert np.abs(precise - expected).max() > 1e-3
    np.testing.assert_allclose(wide, expected, rtol=0, atol=64 * 4 * 2.0**-23)


def test_psum_of_bfloat16_adds_up_in_float32() -> None:
    """NeuronCore-v4 accumulates in bfloat16 tiles: 256 and then a hundred ones."""

    def kernel(x: Any) -> Any:
        ones, total = loaded(x, nl.bfloat16), nl.ndarray((4, 4), nl.bfloat16, buffer=nl.psum)
        for step in range(101):
            moving = ones if step else loaded(x, nl.bfloat16)
            if not step:
                nisa.tensor_scalar(dst=moving, data=moving, op0=nl.multiply, operand0=256.0)
            nisa.nc_matmul(dst=total, stationary=ones, moving=moving, accumulate=step > 0)
        copied = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=copied, src=total)
        return stored(copied)

    precise, wide = both(kernel, np.ones((1, 4), np.float32), chip="trn3")
    np.testing.assert_array_equal(precise, 256)
    np.testing.assert_array_equal(wide, 356)


def test_the_registers_of_an_activation_add_wide_values() -> None:
    """A row sum by activation_reduce of bfloat16 values, written to a bfloat16 column."""

    def kernel(x: Any) -> Any:
        tile, sums = loaded(x, nl.bfloat16), nl.ndarray((x.shape[0], 1), nl.bfloat16, buffer=nl.sbuf)
        nisa.activation_reduce(dst=tile, op=nl.copy, data=tile, reduce_op=nl.add, reduce_res=sums)
        return stored(sums)

    x = uniform(16, 64)
    precise, wide = both(kernel, x)
    expected = x.astype(np.float64).sum(axis=1, keepdims=True)
    assert np.abs(precise.astype(np.float64) - expected).max() > 1e-3
    np.testing.assert_allclose(wide, expected, rtol=0, atol=64 * 2 * 2.0**-23)


def test_what_works_on_bits_takes_the_rounded_values_and_is_counted() -> None:
    """topk sorts bfloat16 by its bits; the run says that it did, and no older digits show through its result."""

    def kernel(x: Any) -> Any:
        best, where = loaded(x, nl.bfloat16), nl.ndarray(x.shape, nl.uint32, buffer=nl.sbuf)
        nisa.memset(dst=where, value=0)
        nisa.topk(val_dst=best, idx_dst=where, src=loaded(x, nl.bfloat16), n=256)
        return stored(best)

    x = np.sort(uniform(256)).reshape(16, 16).T.copy()  # ascending along the snake: the largest are in the last column
    done = run_in("full", kernel, x)
    expected = x.copy()  # what topk does not modify keeps its digits
    expected[:, 0] = x[:, 15].astype(BF16)
    np.testing.assert_array_equal(done.outputs, expected)
    assert done.rounded == {"topk": 1}
    assert run_in("precise", kernel, x).rounded == {}


def test_quantising_takes_the_rounded_values_and_is_counted() -> None:
    """quantize_mx makes packed elements: of a bfloat16 tile the same ones in both precisions."""

    def kernel(x: Any) -> Any:
        dst = nl.ndarray((32, 16), nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        scale = nl.ndarray((32, 16), nl.uint8, buffer=nl.sbuf)
        nisa.memset(dst=scale, value=0)
        nisa.quantize_mx(dst=dst, src=loaded(x, nl.bfloat16), dst_scale=scale)
        return stored(dst), stored(scale)

    x = uniform(32, 64)
    precise, wide = (run_in(precision, kernel, x, chip="trn3") for precision in ("precise", "full"))
    for one, other in zip(precise.outputs, wide.outputs, strict=True):
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    assert wide.rounded == {"quantize_mx": 1}


def test_a_register_holds_the_wide_value() -> None:
    """register_load of a bfloat16 element."""

    def kernel(x: Any) -> Any:
        register, out = nisa.register_alloc(), nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
        nisa.register_load(register, loaded(x, nl.bfloat16))
        nisa.register_store(out, register)
        return out

    x = np.full((1, 1), 1.001, np.float32)
    np.testing.assert_array_equal(full(kernel, x), x)


def test_random_numbers_are_the_same_before_they_are_rounded() -> None:
    """rand2 draws the same numbers in both precisions."""

    def kernel() -> Any:
        tile = nl.ndarray((8, 64), nl.bfloat16, buffer=nl.sbuf)
        nisa.rand2(dst=tile, min=0.0, max=1.0)
        return stored(tile)

    precise, wide = both(kernel, chip="trn3")
    np.testing.assert_array_equal(precise, wide.astype(BF16))
    assert (precise.astype(np.float32) != wide).any()
