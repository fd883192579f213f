"""``tensor[...] = value`` and ``tensor += value``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run


def filled(change: Any, dtype: Any = np.float32) -> Any:
    """A kernel that loads its input, changes the tile in place and stores it."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray(x.shape, dtype=dtype, buffer=nl.sbuf)
        tile[...] = nl.load(x)
        change(tile)
        result = nl.ndarray(x.shape, dtype=dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    return kernel


def change(function: Any, x: Any, dtype: Any = np.float32) -> Any:
    """What ``function`` makes of a tile with the values of ``x``."""
    return outputs(filled(function, dtype), x)


def test_numbers_and_tiles_are_assigned_to_parts() -> None:
    """Slices and integers take numbers and tiles, in place."""

    def parts(t: Any) -> None:
        t[:, 0:2] = 7
        t[:, 4] = t[:, 5]
        t[0:5, 6:8] = t[0:5, 1:3]

    def parts_in_numpy(a: Any) -> Any:
        a[:, 0:2] = 7
        a[:, 4] = a[:, 5]
        a[0:5, 6:8] = a[0:5, 1:3]
        return a

    x = random(8, 8)
    np.testing.assert_array_equal(change(parts, x), parts_in_numpy(x.copy()))


def test_tiles_are_assigned_to_indices() -> None:
    """Indices with steps in either direction choose where the elements go."""

    def scattered(t: Any) -> None:
        t[nl.arange(8)[:, None], 2 * nl.arange(4)[None, :]] = t[nl.arange(8)[:, None], 7 - 2 * nl.arange(4)[None, :]]

    x = random(8, 8)
    expected = x.copy()
    expected[:, ::2] = x[:, 7::-2]
    np.testing.assert_array_equal(change(scattered, x), expected)


def test_a_value_broadcasts_to_the_destination() -> None:
    """A column fills the columns and a row the rows, but nothing larger fits (NK109)."""

    def column(t: Any) -> None:
        t[...] = t[:, 0:1]

    def row(t: Any) -> None:
        t[...] = t[0:1, :]

    def larger(t: Any) -> None:
        t[:, 0:1] = t

    x = random(8, 8)
    np.testing.assert_array_equal(change(column, x), np.broadcast_to(x[:, 0:1], x.shape))
    np.testing.assert_array_equal(change(row, x), np.broadcast_to(x[0:1], x.shape))
    finding = refusal(filled(larger), x)
    assert finding.rule == "NK109"
    assert "err_store_dst_shape_smaller_than_other_shape" in finding.message


def test_a_vector_becomes_a_column() -> None:
    """1-D data in HBM is a column on chip."""

    def kernel(vector: Any) -> Any:
        column = nl.ndarray((nl.par_dim(64), 1), dtype=vector.dtype)
        column[...] = nl.load(vector[0:64])
        result = nl.ndarray((64,), dtype=vector.dtype, buffer=nl.shared_hbm)
        nl.store(result, column)
        return result

    vector = random(80)
    np.testing.assert_array_equal(outputs(kernel, vector), vector[:64])


@pytest.mark.parametrize(
    ("update", "numpy_update"),
    [
        (lambda t: t.__iadd__(2), lambda a: a + 2),
        (lambda t: t.__isub__(t[:, 0:1]), lambda a: a - a[:, 0:1]),
        (lambda t: t.__imul__(t), lambda a: a * a),
        (lambda t: t.__itruediv__(4.0), lambda a: a / 4),
    ],
)
def test_updates_in_place(update: Any, numpy_update: Any) -> None:
    """+=, -=, *= and /= write into the tile."""
    x = random(8, 8)
    np.testing.assert_allclose(change(update, x), numpy_update(x), rtol=1e-6)


def test_an_update_of_a_part_writes_that_part_once() -> None:
    """``t[:, 0:4] += y`` is one instruction on the part."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        tile[:, 0:4] += 1.0
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    x = random(8, 8)
    done = run(kernel, x)
    np.testing.assert_array_equal(done.outputs, np.concatenate((x[:, :4] + 1, x[:, 4:]), axis=1))
    assert [each.name for each in done.instructions] == ["dma_copy", "tensor_scalar", "dma_copy"]


def test_the_dtype_of_the_tile_stays() -> None:
    """A value is converted to the dtype of what it is assigned to, also by +=."""

    def doubled(t: Any) -> None:
        t += t

    x = random(8, 8)
    narrow = x.astype(ml_dtypes.bfloat16)
    expected = (narrow.astype(np.float32) * 2).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(change(doubled, x, ml_dtypes.bfloat16), expected)


def test_a_masked_value_leaves_the_other_lanes_alone() -> None:
    """``t[...] = call(..., mask=m)`` writes the lanes of the mask; the others keep what they had."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(8)[:, None], nl.arange(16)[None, :]
        result = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((8, 16), dtype=x.dtype)
        tile[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_f < 10)
        tile[...] = nl.exp(tile, mask=i_p < 4)
        nl.store(result, tile)
        return result

    x = random(8, 10)
    expected = np.zeros((8, 16), np.float32)
    expected[:, :10] = x
    expected[:4] = np.exp(expected[:4])
    np.testing.assert_allclose(outputs(kernel, x), expected, rtol=1e-6)


def test_a_masked_value_kept_for_later_is_a_tile_like_any_other() -> None:
    """Once something else has run, an assignment copies all lanes, also those that the mask left undefined."""

    def kernel(x: Any) -> Any:
        i_f = nl.arange(16)[None, :]
        result = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        value = nl.load(x, mask=i_f < 10)
        value[:, 10:16] = 5
        tile = nl.zeros((8, 16), dtype=x.dtype)
        tile[...] = value
        nl.store(result, tile)
        return result

    x = random(8, 16)
    expected = x.copy()
    expected[:, 10:] = 5
    np.testing.assert_array_equal(outputs(kernel, x), expected)


def test_assignments_move_data_on_chip_only() -> None:
    """HBM on either side is refused (NK201) and says what to call instead."""

    def into_hbm(x: Any) -> None:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        result[...] = nl.load(x)

    def from_hbm(x: Any) -> None:
        nl.ndarray(x.shape, dtype=x.dtype)[...] = x

    for kernel, remedy in ((into_hbm, "nl.store"), (from_hbm, "nl.load")):
        finding = refusal(kernel, random(8, 8))
        assert finding.rule == "NK201"
        assert remedy in finding.remedy


def test_an_index_is_no_value() -> None:
    """Indices are assigned by way of nisa.iota (NK609)."""

    def kernel(x: Any) -> None:
        nl.ndarray((1, 8), dtype=nl.int32)[...] = nl.arange(8)[None, :]

    finding = refusal(kernel, random(8, 8))
    assert finding.rule == "NK609"
    assert "nisa.iota" in finding.remedy


def test_products_accumulate_in_float32_in_psum() -> None:
    """2048 bfloat16 ones summed by += are 2048, which bfloat16 could not count to one by one."""

    def kernel(ones: Any) -> Any:
        result = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((1, 1), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(16):
            part = nl.load(ones[k * 128 : (k + 1) * 128, :])
            total += nl.matmul(part, part, transpose_x=True)
        nl.store(result, total)
        return result

    assert outputs(kernel, np.ones((2048, 1), ml_dtypes.bfloat16)) == np.float32(2048)


def test_two_tiles_in_psum_are_added_by_way_of_sbuf() -> None:
    """``psum += psum`` works although no engine reads two operands from PSUM."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        first = nisa.nc_matmul(tile, tile)
        second = nisa.nc_matmul(tile, tile)
        nl.device_print("second", second)
        other = nl.exp(tile)
        first += second
        first += other
        nl.store(result, first)
        return result

    x = random(16, 16)
    np.testing.assert_allclose(outputs(kernel, x), 2 * (x.T @ x) + np.exp(x), rtol=1e-5)
