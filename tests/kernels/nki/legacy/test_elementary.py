"""The small legacy kernels against NumPy, at sizes that are and are not multiples of the tile.

A bound is that of the arithmetic: with unit roundoff u, a float32 sum of n terms in any order is off by at most
n * u * sum(|terms|).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nkitools
from kernels.nki.legacy import matmul as matmul_module
from kernels.nki.legacy import relu as relu_module
from kernels.nki.legacy import softmax as softmax_module
from kernels.nki.legacy import sum_reduction as sum_module
from kernels.nki.legacy import transpose as transpose_module
from kernels.nki.legacy import vector_add as vector_module
from kernels.nki.legacy.matmul import matmul
from kernels.nki.legacy.relu import relu
from kernels.nki.legacy.softmax import softmax
from kernels.nki.legacy.sum_reduction import column_sums, row_sums
from kernels.nki.legacy.transpose import transpose
from kernels.nki.legacy.vector_add import vector_add
from tests.kernels.mutants import mutant

UNIT = 2.0**-24
SHAPES = [(1, 1), (127, 5), (128, 2048), (129, 2049), (300, 700)]


def normal(*shape: int, seed: int = 0) -> Any:
    """Normally distributed float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", [1, 511, 65536, 65537, 200_000])
def test_vector_add_is_exact(run_kernel: Callable[..., Any], length: int) -> None:
    """One rounding an element, as in NumPy."""
    x, y = normal(length), normal(length, seed=1)
    np.testing.assert_array_equal(run_kernel(vector_add, x, y), x + y)


@pytest.mark.parametrize("shape", SHAPES)
def test_relu_is_exact(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """Negative numbers become 0, the others stay."""
    x = normal(*shape)
    np.testing.assert_array_equal(run_kernel(relu, x), np.where(x > 0, x, 0))


@pytest.mark.parametrize("shape", SHAPES)
def test_transpose_is_exact(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """Every element moves, none changes."""
    x = normal(*shape)
    np.testing.assert_array_equal(run_kernel(transpose, x), x.T)


def test_transpose_is_exact_by_products_with_an_identity() -> None:
    """As NeuronCore-v2 makes it: what was never loaded would reach whole columns of the tile."""
    x = normal(129, 257)
    np.testing.assert_array_equal(nkitools.simulate(transpose, x, chip="trn1").outputs, x.T)


@pytest.mark.parametrize(("kernel", "axis"), [(row_sums, 1), (column_sums, 0)], ids=["rows", "columns"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_along_either_axis(run_kernel: Callable[..., Any], shape: tuple[int, int], kernel: Any, axis: int) -> None:
    """Within the bound of a float32 sum."""
    x = normal(*shape)
    error = np.abs(run_kernel(kernel, x) - x.sum(axis, dtype=np.float64, keepdims=True))
    assert np.all(error <= shape[axis] * UNIT * np.abs(x).sum(axis, keepdims=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """Rows add up to 1, also where exp of the logits would overflow.

    The relative error: the sum's, the rounding of the exponent (at most 200 here), and a few roundings.
    """
    logits = 100 * normal(*shape)
    exact = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    bound = (shape[1] + np.abs(logits - logits.max(1, keepdims=True)) + 8) * UNIT * exact + np.finfo(np.float32).tiny
    assert np.all(np.abs(run_kernel(softmax, logits) - exact) <= bound)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 128, 512), (129, 127, 513), (300, 260, 700)])
def test_matmul(run_kernel: Callable[..., Any], sizes: tuple[int, int, int]) -> None:
    """Within the bound of a float32 scalar product."""
    depth, height, width = sizes
    left_t, right = normal(depth, height), normal(depth, width, seed=1)
    error = np.abs(run_kernel(matmul, left_t, right) - left_t.T.astype(np.float64) @ right)
    assert np.all(error <= (depth + 1) * UNIT * (np.abs(left_t).T @ np.abs(right)))


TWO = (normal(300, 700), normal(300, 700, seed=1))


@pytest.mark.sim
@pytest.mark.parametrize(
    ("module", "name", "old", "new", "arrays", "rule"),
    [
        (vector_module, "vector_add", "(length + chunk - 1) // chunk", "length // chunk", (TWO[0][0],) * 2, "NK403"),
        (vector_module, "vector_add", "x[element], mask=inside", "x[element]", (TWO[0][0],) * 2, "NK402"),
        (relu_module, "relu", "(rows + pmax - 1)", "(rows - 1)", TWO[:1], "NK403"),
        (softmax_module, "softmax", "share, mask=inside", "share", TWO[:1], "NK402"),
        (
            transpose_module,
            "transpose",
            "turned_tile[partition, free], mask=inside",
            "turned_tile[partition, free]",
            TWO[:1],
            "NK402",
        ),
        (sum_module, "column_sums", "tile = nl.zeros(", "tile = nl.ndarray(", TWO[:1], "NK405"),
        (matmul_module, "matmul", "moving = nl.zeros", "moving = nl.ndarray", TWO, "NK405"),
        (matmul_module, "matmul", "k * tile_k + k_row", "k * tile_k + k_row + 1", TWO, ""),
    ],
)
def test_a_mistake_is_noticed(
    module: ModuleType, name: str, old: str, new: str, arrays: tuple[Any, ...], rule: str
) -> None:
    """A tile left out, a mask forgotten, lanes that were never loaded are findings; a wrong row is a wrong result."""
    wrong = getattr(mutant(module, old, new), name)
    run = nkitools.simulate(wrong, *arrays, rules="report")
    if rule:
        assert rule in {finding.rule for finding in run.findings}
    else:
        assert not np.allclose(run.outputs, nkitools.simulate(getattr(module, name), *arrays).outputs)
