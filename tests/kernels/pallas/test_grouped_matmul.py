"""The Pallas product whose weights are chosen by a prefetched scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

jax = pytest.importorskip("jax")

import nkitools.pallas  # noqa: E402  (JAX decides whether this file is collected)
from kernels.pallas import grouped_matmul as kernel_module  # noqa: E402
from kernels.pallas.grouped_matmul import grouped_matmul_int8  # noqa: E402
from tests.kernels.mutants import mutant  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402

ROWS = 32


def operands() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Five blocks of rows, three groups, of which one comes twice in a row, one comes again later and one never."""
    random = np.random.default_rng(7)
    x = random.integers(-128, 127, (5 * ROWS, 640), endpoint=True).astype(np.int8)
    weights = random.integers(-128, 127, (3, 640, 256), endpoint=True).astype(np.int8)
    return x, weights, np.array([2, 0, 0, 2, 2], np.int32)


def reference(
    x: npt.NDArray[np.int8], weights: npt.NDArray[np.int8], groups: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    return np.concatenate(
        [x[i * ROWS : (i + 1) * ROWS].astype(np.int64) @ weights[group] for i, group in enumerate(groups)]
    )


def test_each_block_meets_its_groups_weights(run_kernel: Callable[..., Any]) -> None:
    """Every element is the integer that it should be, also where a group comes again."""
    measured = run_kernel(grouped_matmul_int8, *operands(), block_rows=ROWS)
    assert measured.dtype == np.int32
    np.testing.assert_array_equal(measured, reference(*operands()))


def test_wrong_operands_are_refused(run_kernel: Callable[..., Any]) -> None:
    """The message says which size or dtype does not fit, and what would."""
    x, weights, groups = operands()
    with pytest.raises(ValueError, match="M is 160; the kernel takes multiples of 128, so pad with zeros"):
        run_kernel(grouped_matmul_int8, x, weights, groups)
    with pytest.raises(ValueError, match=r"groups has shape \(4,\); 5 blocks of 32 rows need \(5,\)"):
        run_kernel(grouped_matmul_int8, x, weights, groups[1:], block_rows=ROWS)
    with pytest.raises(TypeError, match="groups float32; wanted int8, int8, int32"):
        run_kernel(grouped_matmul_int8, x, weights, groups.astype(np.float32), block_rows=ROWS)
    with pytest.raises(ValueError, match=r"weights \(3, 256, 640\); the kernel takes \[M, K\] and \[groups, K, N\]"):
        run_kernel(grouped_matmul_int8, x, weights.transpose(0, 2, 1), groups, block_rows=ROWS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(groups[row], step, column)", "(groups[0], step, column)"),
        ("def _clear() -> None:\n        accumulator[...]", "def _clear() -> None:\n        out[...]"),
    ],
    ids=["all rows meet the first group", "the accumulator is never cleared"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    """A kernel with the mistake does not agree."""
    broken = mutant(kernel_module, old, new).grouped_matmul_int8
    assert not np.array_equal(nkitools.pallas.run(broken, *operands(), block_rows=ROWS).outputs, reference(*operands()))


def test_it_compiles_for_tpus() -> None:
    """The TPU compiler takes index maps that read a prefetched scalar."""
    x, weights = zeros(np.int8, 1024, 1024), zeros(np.int8, 8, 1024, 1024)
    assert_compiles(grouped_matmul_int8, x, weights, zeros(np.int32, 8))
