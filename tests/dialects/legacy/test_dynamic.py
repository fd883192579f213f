"""Addresses that are known only when the kernel runs: offsets in SBUF, rows under masks, additions to rows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run

I_P, I_F = nl.arange(16)[:, None], nl.arange(3)[None, :]


def test_a_tile_is_copied_from_where_an_offset_says() -> None:
    """The sum of an offset and an index, or an offset alone, along any free dimension."""

    def kernel(a: Any, b: Any, offsets: Any) -> tuple[Any, Any]:
        columns = nl.ndarray((16, 4, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        rows = nl.ndarray((16, 4, 5), dtype=b.dtype, buffer=nl.shared_hbm)
        flat, deep, at = nl.load(a), nl.load(b), nl.load(offsets)
        found, whole = nl.ndarray((16, 4, 3), dtype=a.dtype), nl.ndarray((16, 4, 5), dtype=b.dtype)
        i_p, _, i_z = nl.mgrid[0:16, 0:1, 0:5]
        for i in nl.affine_range(4):
            found[:, i, :] = nisa.tensor_copy_dynamic_src(flat[I_P, at[0, i] + 2 * I_F - 1])
            whole[i_p, i, i_z] = nisa.tensor_copy_dynamic_src(deep[i_p, at[0, i], i_z])
        nl.store(columns, found)
        nl.store(rows, whole)
        return columns, rows

    x, y, at = random(16, 20), random(16, 12, 5, seed=1), np.array([[1, 7, 3, 11]], np.int32)
    columns, rows = outputs(kernel, x, y, at)
    np.testing.assert_array_equal(columns, np.stack([x[:, i - 1 : i + 4 : 2] for i in at[0]], axis=1))
    np.testing.assert_array_equal(rows, y[:, at[0]])


def test_a_tile_is_copied_to_where_an_offset_says() -> None:
    """In place, and with a mask only the lanes that it leaves; another dtype on the way out of a source."""

    def kernel(a: Any, offsets: Any) -> tuple[Any, Any]:
        result = nl.ndarray((16, 20), dtype=a.dtype, buffer=nl.shared_hbm)
        narrow = nl.ndarray((16, 3), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        tile, at, filled = nl.load(a), nl.load(offsets), nl.zeros((16, 20), dtype=a.dtype)
        nisa.tensor_copy_dynamic_dst(dst=filled[I_P, at[0, 0] + I_F], src=tile)
        nisa.tensor_copy_dynamic_dst(dst=filled[I_P, I_F + at[0, 1]], src=tile, mask=(I_P < 9) & (I_F >= 1))
        nl.store(result, filled)
        nl.store(narrow, nisa.tensor_copy_dynamic_src(filled[I_P, at[0, 0] + I_F], dtype=nl.bfloat16))
        return result, narrow

    x, at = random(16, 3), np.array([[15, 4]], np.int32)
    expected = np.zeros((16, 20), np.float32)
    expected[:, 15:18] = x
    expected[:9, 5:7] = x[:9, 1:]
    result, narrow = outputs(kernel, x, at)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(narrow, x.astype(ml_dtypes.bfloat16))


def test_an_offset_is_read_when_the_copy_runs() -> None:
    """As the chip does it, not when the index is written."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, at = nl.load(a), nl.zeros((1, 1), dtype=nl.int32)
        moved = tile[I_P, at + I_F]
        at[...] = 6
        nl.store(result, nisa.tensor_copy_dynamic_src(moved))
        return result

    x = random(16, 20)
    np.testing.assert_array_equal(outputs(kernel, x), x[:, 6:9])


def test_block_dimensions_of_hbm_take_an_offset() -> None:
    """A scalar in SBUF chooses a block, or moves rows; a store to it as well."""

    def kernel(a: Any, offsets: Any) -> tuple[Any, Any]:
        block = nl.ndarray((16, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        moved = nl.ndarray((4, 16, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        at = nl.load(offsets)
        nl.store(block, nl.load(a[at[0, 0], I_P, I_F]))
        for i in range(4):
            nl.store(moved[at[0, i], I_P, I_F], nl.load(a[i, 16 * 0 + I_P, I_F]))
        return block, moved

    x, at = random(4, 16, 3), np.array([[2, 0, 3, 1]], np.int32)
    block, moved = outputs(kernel, x, at)
    np.testing.assert_array_equal(block, x[2])
    np.testing.assert_array_equal(moved[at[0]], x)


def test_rows_under_a_mask() -> None:
    """Rows that a mask leaves out are neither looked up nor written, whatever their numbers are."""

    def kernel(a: Any, rows: Any) -> tuple[Any, Any]:
        gathered = nl.ndarray((16, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        scattered = nl.ndarray((8, 3), dtype=a.dtype, buffer=nl.shared_hbm)
        index = nl.load(rows)
        tile = nl.zeros((16, 3), dtype=a.dtype)
        tile[...] = nl.load(a[index[I_P, 0], I_F], mask=(I_P < 8) & (I_F < 2))
        nl.store(gathered, tile)
        nl.store(scattered[index[I_P, 0], I_F], tile, mask=I_P < 8)
        return gathered, scattered

    x = random(8, 3)
    rows = np.array([3, 1, 7, 0, 2, 6, 4, 5] + [900] * 8, np.int32).reshape(16, 1)
    expected = np.zeros((16, 3), np.float32)
    expected[:8, :2] = x[rows[:8, 0], :2]
    gathered, scattered = outputs(kernel, x, rows)
    np.testing.assert_array_equal(gathered, expected)
    np.testing.assert_array_equal(scattered[rows[:8, 0]], expected[:8])


def test_columns_beyond_the_tensor_and_a_predicate() -> None:
    """Free indices that leave the tensor are good where the mask leaves them out, oblique masks too."""

    def kernel(a: Any, rows: Any) -> Any:
        result = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        p, f = nl.arange(8)[:, None], nl.arange(6)[None, :]
        tile = nl.zeros((8, 6), dtype=a.dtype)
        tile[...] = nl.load(a[nl.load(rows), f], mask=(f < 4) & (p + f >= 3))
        nl.store(result, tile)
        return result

    x, rows = random(8, 4), np.array([7, 6, 5, 4, 3, 2, 1, 0], np.int32).reshape(8, 1)
    p, f = np.mgrid[0:8, 0:6]
    expected = np.zeros((8, 6), np.float32)
    expected[:, :4] = x[::-1]
    np.testing.assert_array_equal(outputs(kernel, x, rows), np.where((f < 4) & (p + f >= 3), expected, 0))


@pytest.mark.parametrize("by_dma_copy", [False, True])
def test_additions_to_rows_accumulate(by_dma_copy: bool) -> None:
    """A row that is named several times gets all that is added to it, rounded to the dtype each time."""

    def kernel(table: Any, rows: Any, values: Any) -> Any:
        result = nl.ndarray((8, 3), dtype=table.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(table))
        target = result[nl.load(rows), I_F]
        if by_dma_copy:
            nisa.dma_copy(dst=target, src=nl.load(values), dst_rmw_op=np.add)
        else:
            nl.atomic_rmw(target, value=nl.load(values), op=np.add)
        return result

    table, values = random(8, 3).astype(ml_dtypes.bfloat16), random(16, 3, seed=1)
    rows = np.random.default_rng(4).integers(0, 4, (16, 1), dtype=np.int32)
    expected = table.copy()
    for row, value in zip(rows[:, 0], values, strict=True):
        expected[row] = (expected[row].astype(np.float32) + value).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(outputs(kernel, table, rows, values), expected)


def test_numbers_are_added_under_a_mask() -> None:
    """A number to the rows of a mask, and a tile added to a plain tensor by dma_copy."""

    def kernel(table: Any, rows: Any) -> Any:
        result = nl.ndarray((8, 3), dtype=table.dtype, buffer=nl.shared_hbm)
        tile = nl.load(table)
        nl.store(result, tile)
        nl.atomic_rmw(result[nl.load(rows), I_F], 2.5, np.add, mask=I_P < 5)
        nisa.dma_copy(dst=result, src=tile, dst_rmw_op=nl.add)
        return result

    table, rows = random(8, 3), np.array([1, 1, 3, 1, 7, *[100] * 11], np.int32).reshape(16, 1)
    expected = 2 * table
    np.add.at(expected, rows[:5, 0], 2.5)
    np.testing.assert_allclose(outputs(kernel, table, rows), expected, rtol=1e-6)


def test_each_turn_of_an_addition_is_an_instruction() -> None:
    """A row that is named three times takes three transfers, one after the other; rows named once take one."""

    def kernel(table: Any, rows: Any) -> Any:
        result = nl.ndarray((8, 3), dtype=table.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(table))
        nl.atomic_rmw(result[nl.load(rows), I_F[:, :]], 1.0, np.add)
        return result

    for numbers, turns in (([0, 1, 2, 3], 1), ([5, 1, 5, 5], 3)):
        done = run(kernel, random(8, 3), np.array(numbers, np.int32).reshape(4, 1))
        assert sum(each.name == "dma_compute" for each in done.instructions) == turns


def on_tiles(use: Any) -> Any:
    """A kernel that calls ``use`` with an HBM tensor, a tile and a (1, 4) tile of offsets, and a (16, 1) one."""

    def kernel(a: Any) -> Any:
        offsets = nisa.iota(nl.arange(4)[None, :] + 8, dtype=nl.int32)
        use(a, nl.load(a), offsets, nisa.iota(nl.arange(16)[:, None], dtype=nl.int32))
        return a

    return kernel


@pytest.mark.parametrize(
    ("use", "rule", "said"),
    [
        (lambda a, t, o, i: nl.copy(t[I_P, o[0, 0] + I_F]), "NK603", "known only when the kernel runs"),
        (lambda a, t, o, i: nl.exp(t[I_P, o[0, 0] + I_F]), "NK603", "err_copy_dynamic"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[I_P, o[0, 3] + I_F]), "NK402", "11"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[I_P, o[0, 0] + I_F - 9]), "NK402", "-1"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[I_P, i + I_F]), "NK603", "16 partitions"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[I_P, o + I_F]), "NK603", "one element"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[o[0, 0] + I_P, I_F]), "NK603", "partition"),
        (lambda a, t, o, i: nisa.tensor_copy_dynamic_src(t[I_P, t[0, 0] + I_F]), "NK301", "integers"),
        (lambda a, t, o, i: t[I_P, 2 * (o[0, 0] + I_F)], "NK603", "other operator"),
        (lambda a, t, o, i: nl.exp(t, mask=o[0, 0] + I_F < 3), "NK604", "known only when"),
        (lambda a, t, o, i: nl.load(a[i, I_F], mask=nl.arange(8)[:, None] < 4), "NK604", "8 positions"),
        (lambda a, t, o, i: nl.load(a[i + I_F, I_F]), "NK603", "err_indirect_indices_free_dim"),
        (lambda a, t, o, i: nl.load_transpose2d(a[i, I_F]), "NK603", "err_indirect_indices_are_not_supported"),
        (lambda a, t, o, i: nl.atomic_rmw(a[0:16, :], t, np.add), "NK603", "indexed by a tile"),
        (lambda a, t, o, i: nl.atomic_rmw(a[i, I_F], t[:, 0:3], np.multiply), "NK306", "np.add"),
        (lambda a, t, o, i: nl.atomic_rmw(a[i, I_F], t[:, 0:3], np.add), "NK406", "input"),
        (
            lambda a, t, o, i: nisa.dma_copy(dst=t, src=a, dst_rmw_op=np.add, oob_mode=nisa.oob_mode.skip),
            "NK609",
            "oob_mode=error",
        ),
        (
            lambda a, t, o, i: nl.atomic_rmw(
                nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.private_hbm)[i, I_F], t[:, 0:3], np.add
            ),
            "NK402",
            "out of bounds",
        ),
    ],
)
def test_what_is_refused(use: Any, rule: str, said: str) -> None:
    """Offsets in other calls, of other forms and out of bounds, and other operations are refused by rule."""
    finding = refusal(on_tiles(use), random(16, 12))
    assert finding.rule == rule
    assert said in finding.message
