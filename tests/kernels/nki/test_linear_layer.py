"""The linear layer with tilings of its own against NumPy in float64."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import nki.language as nl
import numpy as np
import pytest

import nkitools
from kernels.nki import linear_layer as kernel_module
from kernels.nki.linear_layer import Serpentine, Tiling, linear
from tests.kernels.mutants import mutant

VERSIONS = ("0.7",)
SHAPES = [(1, 1, 1), (128, 128, 512), (200, 300, 1100), (130, 257, 513)]  # contraction, rows, columns


def case(shape: tuple[int, int, int]) -> tuple[Any, Any, Any]:
    """Inputs by columns, weights and bias."""
    contraction, rows, columns = shape
    random = np.random.default_rng(sum(shape))
    sizes = ((contraction, rows), (contraction, columns), (1, columns))
    left, right, bias = (random.standard_normal(size).astype(np.float32) for size in sizes)
    return left, right, bias


def assert_linear(measured: Any, inputs: Any, weights: Any, bias: Any) -> None:
    """A float32 sum of K products and the bias is off by K + 1 roundings of the sum of magnitudes at most."""
    left, right, more = (each.astype(np.float64) for each in (inputs, weights, bias))
    expected = np.maximum(left.T @ right + more, 0)
    bound = (len(left) + 1) * 2.0**-24 * (np.abs(left).T @ np.abs(right) + np.abs(more))
    assert np.all(np.abs(measured - expected) <= bound)


@pytest.mark.parametrize("tiling", [Tiling, Serpentine])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_linear(run_kernel: Callable[..., Any], tiling: Any, shape: tuple[int, int, int]) -> None:
    """Any sizes, in either order of tiles."""
    arguments = case(shape)
    assert_linear(run_kernel(linear, *arguments, tiling=tiling), *arguments)


def test_the_order_of_tiles_changes_no_bit() -> None:
    """And the serpentine loads a strip less at the end of each row of tiles."""
    arguments = case((128, 300, 1100))
    runs = [nkitools.simulate(linear, *arguments, tiling=each) for each in (Tiling, Serpentine)]
    np.testing.assert_array_equal(runs[0].outputs, runs[1].outputs)
    assert [run.findings for run in runs] == [[], []]
    loads = [Counter(each.name for each in run.instructions)["dma_copy"] for run in runs]
    # Three rows of three tiles: every tile is stored, and loads weights and bias; a row loads its inputs.
    assert loads == [9 + 2 * 9 + 3, 9 + 2 * (9 - 2) + 3]


def test_another_activation() -> None:
    """Passed by keyword, as the kernel has it."""
    inputs, weights, bias = case((40, 30, 20))
    found = nkitools.simulate(linear, inputs, weights, bias, activation=nl.copy).outputs
    np.testing.assert_allclose(found, inputs.T @ weights + bias, atol=1e-4)


def test_0_6_has_no_classes_of_its_own() -> None:
    """Nor keyword-only parameters: the source rules of 0.6 name them (NK601)."""
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(linear, *case((40, 30, 20)), nki_version="0.6")
    assert caught.value.finding.rule == "NK601"


def test_a_mistake_in_the_kernel_is_noticed() -> None:
    """A serpentine that leaves tiles out does not write the result whole (NK403)."""
    broken = mutant(kernel_module, "len(self.columns) - 1 - n", "0").linear
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(broken, *case((40, 300, 1100)))
    assert caught.value.finding.rule == "NK403"
