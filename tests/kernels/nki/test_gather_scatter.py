"""The row gather and the scatter-add against NumPy's indexing and ``add.at``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import gather_scatter as kernel_module
from kernels.nki.gather_scatter import gather_rows, scatter_add
from tests.kernels.mutants import mutant

SIZES = [(1, 1, 1), (7, 128, 512), (1000, 300, 700), (5, 257, 40)]  # rows of the table, indices, width


def case(rows: int, count: int, width: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], Any]:
    """A table, indices with repetitions of which some are out of range, and updates."""
    random = np.random.default_rng(rows + count)
    table, updates = (random.standard_normal((size, width), np.float32) for size in (rows, count))
    indices = random.integers(0, rows, count).astype(np.int32)
    indices[5::11] = rows + 3
    return table, indices, updates


def scatter_reference(table: Any, indices: Any, updates: Any) -> npt.NDArray[np.float64]:
    """The sums in float64, update by update."""
    expected: npt.NDArray[np.float64] = table.astype(np.float64)
    inside = (indices >= 0) & (indices < len(table))
    np.add.at(expected, indices[inside], updates[inside].astype(np.float64))
    return expected


@pytest.mark.parametrize("sizes", SIZES)
def test_gather(run_kernel: Callable[..., Any], sizes: tuple[int, int, int]) -> None:
    """Rows come bit by bit, zeros where the index is out of range."""
    table, indices, _ = case(*sizes)
    expected = np.where((indices < len(table))[:, None], table[indices % len(table)], 0)
    np.testing.assert_array_equal(run_kernel(gather_rows, table, indices), expected)


def test_gather_of_integers(run_kernel: Callable[..., Any]) -> None:
    """Any dtype goes, unsigned indices too."""
    table = np.arange(60, dtype=np.int16).reshape(20, 3)
    indices = np.array([19, 0, 0, 7, 20], np.uint32)
    np.testing.assert_array_equal(run_kernel(gather_rows, table, indices), [*table[[19, 0, 0, 7]], [0, 0, 0]])


@pytest.mark.parametrize("sizes", SIZES)
def test_scatter_add(run_kernel: Callable[..., Any], sizes: tuple[int, int, int]) -> None:
    """Repeated indices add up, in one tile and across tiles."""
    table, indices, updates = case(*sizes)
    before = table.copy()
    measured = run_kernel(scatter_add, table, indices, updates)
    np.testing.assert_allclose(measured, scatter_reference(table, indices, updates), atol=1e-4, rtol=0)
    np.testing.assert_array_equal(table, before)


def test_all_updates_to_one_row(run_kernel: Callable[..., Any]) -> None:
    """300 updates of one row, whose sum is exact, are all there; a negative index is out of range."""
    table, updates = np.zeros((3, 2), np.float32), np.ones((301, 2), np.float32)
    indices = np.array([1] * 300 + [-1], np.int32)
    np.testing.assert_array_equal(run_kernel(scatter_add, table, indices, updates), [[0, 0], [300, 300], [0, 0]])


def test_updates_of_another_shape_are_refused() -> None:
    """An update too few is an assertion of the kernel."""
    table, indices, updates = case(7, 20, 4)
    with pytest.raises(AssertionError, match="one row for each index"):
        nkitools.simulate(scatter_add, table, indices, updates[:-1])


MISTAKES = {
    "duplicates of a tile overwrite each other": ("op0=nl.equal, operand0=column", "op0=nl.multiply, operand0=0.0"),
    "the larger one is kept, not the sum": ("data2=added, op=nl.add", "data2=added, op=nl.maximum"),
    "the table's own rows are read, not the sums so far": ("_rows_of(result, index", "_rows_of(table, index"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_scatter_is_noticed(mistake: str) -> None:
    """The comparison tells of it."""
    table, indices, updates = case(5, 257, 40)
    broken = mutant(kernel_module, *MISTAKES[mistake]).scatter_add
    measured = nkitools.simulate(broken, table, indices, updates, rules="report").outputs
    assert not np.allclose(measured, scatter_reference(table, indices, updates), atol=1e-2, rtol=0)


def test_an_index_out_of_range_is_reported_where_it_is_not_skipped() -> None:
    """Without oob_mode.skip the index is named (NK402)."""
    table, indices, _ = case(5, 20, 4)
    broken = mutant(
        kernel_module, "columns), oob_mode=nisa.oob_mode.skip)\n    return tile", "columns))\n    return tile"
    ).gather_rows
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(broken, table, indices)
    assert caught.value.finding.rule == "NK402"
