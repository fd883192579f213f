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
    expected = x.astype(BF16).astype(np.float32)
    expected[:, 0] = expected[:, 15]
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


# --- views -----------------------------------------------------------------------------------------------------------


def test_slices_and_other_views_keep_their_digits() -> None:
    """A part written through a slice, read through a permuted, reshaped and broadcast view."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.bfloat16)
        part = loaded(x[0:4, 2:5, :], nl.float16)
        nisa.tensor_scalar(dst=tile[0:4, 2:5, :], data=part, op0=nl.multiply, operand0=3.0)
        swapped = nl.ndarray((x.shape[0], x.shape[2], x.shape[1]), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=swapped, src=tile.permute((0, 2, 1)))
        flat = nl.ndarray((x.shape[0], x.shape[1] * x.shape[2]), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=flat, src=tile.reshape(flat.shape))
        spread = nl.ndarray((x.shape[0], 7), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=spread, src=tile[:, 3, 1:2].broadcast(1, 7))
        strided = nl.ndarray((4, 3), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=strided, src=tile.ap([[30, 4], [7, 3]], offset=31))
        return stored(tile), stored(swapped), stored(flat), stored(spread), stored(strided)

    x = uniform(8, 6, 5)
    expected = x.copy()
    expected[:4, 2:5] *= np.float32(3)
    tile, swapped, flat, spread, strided = full(kernel, x)
    np.testing.assert_array_equal(tile, expected)
    np.testing.assert_array_equal(swapped, expected.transpose(0, 2, 1))
    np.testing.assert_array_equal(flat, expected.reshape(8, 30))
    np.testing.assert_array_equal(spread, np.repeat(expected[:, 3, 1:2], 7, axis=1))
    np.testing.assert_array_equal(strided, expected.reshape(8, 30)[1:5, [1, 8, 15]])


def test_a_view_of_another_dtype_reads_the_rounded_bits() -> None:
    """It shows what the chip would hold."""
    x = uniform(4, 8)
    bits = full(lambda x: stored(loaded(x, nl.bfloat16).view(nl.uint16)), x)
    np.testing.assert_array_equal(bits, x.astype(BF16).view(np.uint16))


@pytest.mark.parametrize("address", [None, (0, 512), (32, 1024)])
def test_what_is_written_through_a_view_of_another_dtype_has_no_more_digits(address: Any) -> None:
    """Only the elements that it wrote: also where their bits stay as they were."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.sbuf, **({} if address is None else {"address": address}))
        nisa.dma_copy(dst=tile, src=x)
        words = tile.view(nl.uint32)[2:4, 1:3]
        nisa.dma_copy(dst=words, src=words)
        nisa.memset(dst=tile.view(nl.uint8)[0:1, 3:4], value=0)
        return stored(tile)

    x = uniform(8, 8)
    expected = x.copy()
    rounded = x.astype(BF16)
    expected[2:4, 2:6] = rounded[2:4, 2:6]
    rounded.view(np.uint8)[0, 3] = 0
    expected[0, 1] = rounded[0, 1]
    np.testing.assert_array_equal(full(kernel, x), expected)


def test_one_narrow_dtype_seen_as_another() -> None:
    """A float16 tile written as bfloat16: what was written is rounded, the rest keeps its digits."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.float16)
        seen = tile.view(nl.bfloat16)
        nisa.dma_copy(dst=seen[:, 0:2], src=x[:, 0:2])
        nisa.tensor_scalar(dst=seen[:, 1:2], data=seen[:, 1:2], op0=nl.multiply, operand0=3.0)
        return stored(tile), stored(seen)

    x = uniform(4, 8)
    written = x[:, 0:2].astype(BF16).astype(np.float32)
    written[:, 1] *= np.float32(3)
    bits = x.astype(np.float16).view(np.uint16)
    bits[:, 0:2] = written.astype(BF16).view(np.uint16)
    tile, seen = full(kernel, x)
    np.testing.assert_array_equal(tile[:, 2:], x[:, 2:])
    np.testing.assert_array_equal(tile[:, :2], bits.view(np.float16)[:, :2].astype(np.float32))
    np.testing.assert_array_equal(seen, bits.view(BF16).astype(np.float32))


# --- addresses -------------------------------------------------------------------------------------------------------


def test_tensors_at_an_address_keep_their_digits() -> None:
    """At partitions other than 0, and read in part."""

    def kernel(x: Any) -> Any:
        tile = loaded(x, nl.bfloat16, address=(32, 2048))
        nisa.tensor_scalar(dst=tile[:, 4:8], data=tile[:, 4:8], op0=nl.add, operand0=1.0)
        return stored(tile)

    x = uniform(16, 8)
    expected = x.copy()
    expected[:, 4:] += np.float32(1)
    np.testing.assert_array_equal(full(kernel, x), expected)


def test_another_tensor_at_the_same_address_ends_them() -> None:
    """What it writes is what the first one reads, rounded."""

    def kernel(x: Any) -> Any:
        first = loaded(x, nl.bfloat16, address=(0, 0))
        second = nl.ndarray((8, 4), nl.bfloat16, buffer=nl.sbuf, address=(0, 0))
        nisa.tensor_scalar(dst=second, data=first[:, 0:4], op0=nl.add, operand0=1.0)
        return stored(first), stored(second)

    x = uniform(8, 8)
    with_one = x[:, :4] + np.float32(1)
    done = run_in("full", kernel, x, rules="off")
    np.testing.assert_array_equal(done.outputs[1], with_one)
    np.testing.assert_array_equal(done.outputs[0], np.hstack([with_one.astype(BF16).astype(np.float32), x[:, 4:]]))


# --- run-time addresses ----------------------------------------------------------------------------------------------


def test_rows_are_gathered_and_scattered_with_their_digits() -> None:
    """By an index per partition, from a bfloat16 tensor in HBM and into it."""

    def kernel(x: Any, rows: Any) -> Any:
        table = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=table, src=loaded(x, nl.float32))
        index = loaded(rows, nl.int32)
        chosen = nl.ndarray((rows.shape[0], x.shape[1]), nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_copy(dst=chosen, src=table.vector_select(0, index))
        nisa.tensor_scalar(dst=chosen, data=chosen, op0=nl.multiply, operand0=1.5)
        nisa.dma_copy(dst=table.vector_select(0, index), src=chosen)
        return stored(chosen), table

    x, rows = uniform(16, 8), np.array([[3], [0], [11], [7]], np.int32)
    chosen, table = full(kernel, x, rows)
    expected = x.copy()
    expected[rows[:, 0]] *= np.float32(1.5)
    np.testing.assert_array_equal(chosen, expected[rows[:, 0]])
    np.testing.assert_array_equal(table, expected)


def test_a_row_that_is_left_out_keeps_its_digits() -> None:
    """oob_mode.skip, on the side of the gather's destination."""

    def kernel(x: Any, rows: Any) -> Any:
        table = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=table, src=loaded(x, nl.float32))
        chosen = loaded(x[0:4, :], nl.bfloat16)
        source = table.vector_select(0, loaded(rows, nl.int32))
        nisa.dma_copy(dst=chosen, src=source, oob_mode=nisa.oob_mode.skip)
        return stored(chosen)

    x, rows = uniform(8, 4), np.array([[5], [99], [6], [-1]], np.int32)
    np.testing.assert_array_equal(full(kernel, x, rows), x[[5, 1, 6, 3]])


def test_rows_are_added_with_their_digits() -> None:
    """dma_compute's scatter-add into bfloat16: 256 and 1 are 257."""

    def kernel(x: Any, rows: Any) -> Any:
        table = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=table, src=loaded(x, nl.float32))
        ones = nl.ndarray((2, x.shape[1]), nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(dst=ones, value=1.0)
        target = table.vector_select(0, loaded(rows, nl.int32))
        nisa.dma_compute(target, [target, ones], nl.add)
        return table

    precise, wide = both(kernel, np.full((4, 4), 256, np.float32), np.array([[1], [3]], np.int32))
    np.testing.assert_array_equal(precise.astype(np.float32), 256)
    np.testing.assert_array_equal(wide[:, 0], [256, 257, 256, 257])


def test_a_register_addresses_the_wide_values() -> None:
    """A slice that a register moves, read and written."""

    def kernel(x: Any) -> Any:
        tile, register = loaded(x, nl.bfloat16), nisa.register_alloc(2)
        window = tile[:, nl.ds(register, 3)]
        nisa.tensor_scalar(dst=window, data=window, op0=nl.add, operand0=1.0)
        return stored(tile)

    x = uniform(4, 8)
    expected = x.copy()
    expected[:, 2:5] += np.float32(1)
    np.testing.assert_array_equal(full(kernel, x), expected)


def test_columns_are_gathered_and_scattered_with_their_digits() -> None:
    """NeuronCore-v4's tensor indirection."""

    def kernel(x: Any, offsets: Any) -> Any:
        tile, index = loaded(x, nl.bfloat16), loaded(offsets, nl.uint16)
        chosen, target = nl.ndarray((16, 16), nl.bfloat16, buffer=nl.sbuf), loaded(x, nl.bfloat16)
        nisa.tensor_copy(dst=chosen, src=tile.indirect(index))
        nisa.tensor_scalar(dst=chosen, data=chosen, op0=nl.multiply, operand0=1.5)
        nisa.tensor_copy(dst=target.indirect(index), src=chosen)
        return stored(chosen), stored(target)

    x = uniform(16, 32)
    order = np.random.default_rng(2).permutation(32)[:16]
    chosen, target = full(kernel, x, order.astype(np.uint16).reshape(16, 1), chip="trn3")
    expected = x.copy()
    expected[:, order] *= np.float32(1.5)
    np.testing.assert_array_equal(chosen, expected[:, order])
    np.testing.assert_array_equal(target, expected)


def test_lanes_that_are_not_copied_keep_their_digits() -> None:
    """tensor_copy_predicated between bfloat16 tiles."""

    def kernel(x: Any, y: Any, chosen: Any) -> Any:
        tile = loaded(x, nl.bfloat16)
        nisa.tensor_copy_predicated(dst=tile, src=loaded(y, nl.bfloat16), predicate=loaded(chosen, nl.uint8))
        return stored(tile)

    x, y = uniform(4, 8), uniform(4, 8, seed=1)
    chosen = (x > 0).astype(np.uint8)
    np.testing.assert_array_equal(full(kernel, x, y, chosen), np.where(chosen, y, x))
