"""Full precision keeps the values of low-precision tensors through views, addresses, gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.precision.modes import BF16, both, full, loaded, run_in, stored, uniform

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
