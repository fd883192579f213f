"""The top-k kernel against a stable sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import top_k as kernel_module
from kernels.nki.top_k import top_k
from tests.kernels.mutants import mutant


def top_k_reference(rows: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The k largest of each row and their columns; of equal values the first columns come first."""
    wide = rows.astype(np.float64)
    columns = np.argsort(-wide, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(wide, columns, axis=1), columns


def assert_top_k(measured: Any, rows: npt.NDArray[np.float32], k: int) -> None:
    """Values and columns are exactly the reference's."""
    for got, wanted in zip(measured, top_k_reference(rows, k), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("shape", "k"), [((1, 8), 8), ((3, 9), 9), ((128, 1000), 64), ((200, 4096), 13), ((5, 16384), 1)]
)
def test_top_k(run_kernel: Callable[..., Any], shape: tuple[int, int], k: int) -> None:
    """Any number of rows, and any k up to 64."""
    rows = np.random.default_rng(k).standard_normal(shape, np.float32)
    values, indices = run_kernel(top_k, rows, k)
    assert (values.dtype, indices.dtype) == (np.float32, np.uint32)
    assert_top_k((values, indices), rows, k)


def test_equal_values_come_by_column(run_kernel: Callable[..., Any]) -> None:
    """Values that occur more often than one instruction finds keep the order of their columns across rounds."""
    rows = np.random.default_rng(0).integers(0, 4, (130, 100)).astype(np.float32)
    assert_top_k(run_kernel(top_k, rows, 40), rows, 40)


@pytest.mark.parametrize(("columns", "k"), [(7, 1), (16385, 1), (100, 65), (20, 21), (20, 0)])
def test_sizes_that_are_refused(columns: int, k: int) -> None:
    """What the instructions cannot search, and k out of range, is an assertion of the kernel."""
    with pytest.raises(AssertionError, match="must"):
        nkitools.simulate(top_k, np.zeros((2, columns), np.float32), k)


MISTAKES = {
    "values found are not replaced": ("if turn < rounds - 1:", "if turn < 0:"),
    "replaced by a value that is larger than others": ("imm=FOUND", "imm=0.0"),
    "indices looked up among the results": (
        "nc_find_index8(dst=where[:, eight], data=left",
        "nc_find_index8(dst=where[:, eight], data=best",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    rows = np.random.default_rng(2).standard_normal((130, 50), np.float32)
    broken = mutant(kernel_module, *MISTAKES[mistake]).top_k
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_top_k(nkitools.simulate(broken, rows, 30).outputs, rows, 30)
