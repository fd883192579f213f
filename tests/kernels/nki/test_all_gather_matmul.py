"""The fused all-gather and matrix product against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from kernels.nki import all_gather_matmul as kernel_module
from kernels.nki.all_gather_matmul import all_gather_matmul
from tests.kernels.mutants import mutant


def operands(ranks: int, rows: int, contraction: int, columns: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    """Shards [ranks, M, K], and for each rank columns of its own [ranks, K, N]."""
    source = np.random.default_rng(rows + contraction)
    return (
        source.standard_normal((ranks, rows, contraction)).astype(dtype),
        source.standard_normal((ranks, contraction, columns)).astype(dtype),
    )


def reference(left: Any, right: Any) -> Any:
    """[rank that has it, rank of the shard, M, N]."""
    return left.astype(np.float64)[None] @ right.astype(np.float64)[:, None]


def arguments(left: Any, right: Any) -> list[tuple[Any, ...]]:
    return [(np.ascontiguousarray(shard.T), rhs, len(left)) for shard, rhs in zip(left, right, strict=True)]


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("ranks", "rows", "contraction", "columns"),
    [(2, 8, 16, 4), (2, 128, 128, 512), (2, 130, 200, 1030), (3, 5, 129, 6)],
)
def test_all_gather_matmul(
    run_kernel: Callable[..., Any], ranks: int, rows: int, contraction: int, columns: int, cores: int
) -> None:
    """Each rank has the products of all shards with its own columns, to float32's accuracy."""
    left, right = operands(ranks, rows, contraction, columns)
    outputs = run_kernel(all_gather_matmul[cores], *arguments(left, right), ranks=ranks)
    for measured, expected in zip(outputs, reference(left, right), strict=True):
        assert measured.dtype == np.float32
        np.testing.assert_allclose(measured, expected, atol=2e-6 * contraction)


def test_products_of_bfloat16(run_kernel: Callable[..., Any]) -> None:
    """Multiplied exactly and added in float32."""
    left, right = operands(2, 64, 130, 96, ml_dtypes.bfloat16)
    outputs = run_kernel(all_gather_matmul, *arguments(left, right), ranks=2)
    np.testing.assert_allclose(outputs, reference(left, right), atol=2e-6 * 130)


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"), [(5, 2, "contraction size"), (4, 3, "evenly"), (4, 2, "nothing to gather")]
)
def test_sizes_that_are_refused(rows: int, columns: int, sentence: str) -> None:
    """Assertions of the kernel."""
    shard, rhs = np.zeros((4, 2), np.float32), np.zeros((rows, columns), np.float32)
    with pytest.raises(AssertionError, match=sentence):
        nkitools.simulate(all_gather_matmul[2], (shard, rhs, 1), ranks=1)


MISTAKES = {
    "what is sent is not what was computed on": ("[[here]], [[there]]", "[[there]], [[here]]"),
    "the next shard is not waited for": ("if step + 1 < ranks:", "if step > 0:"),
    "the place is the rank's own": ("rank_id(step, ring)", "rank_id(0, ring)"),
    "the rows of another tile": ("offset=m * columns + n", "offset=n"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str) -> None:
    """Each of them changes a result or is a finding."""
    wrong = mutant(kernel_module, *MISTAKES[mistake]).all_gather_matmul
    left, right = operands(2, 130, 16, 4)
    run = nkitools.simulate(wrong[2], *arguments(left, right), ranks=2, rules="report")
    close = run.outputs is not None and np.allclose(run.outputs, reference(left, right), atol=1e-4)
    assert run.findings or not close
