"""The legacy GIoU kernel against the float64 reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki as nki
import numpy as np
import pytest

import nkitools
from kernels.nki.legacy import giou as kernel_module
from kernels.nki.legacy.giou import giou
from tests.kernels.mutants import mutant
from tests.kernels.reference import boxes, giou_reference

TOLERANCE = 1e-5


def rows(array: Any) -> Any:
    """Boxes [batch, boxes, 4] as the kernel takes them: one row of numbers for each entry of the batch."""
    return array.reshape(array.shape[0], -1)


def worst_error(measured: Any, preds: Any, targets: Any) -> float:
    """The largest distance from the reference; NaN where the kernel gave one."""
    return float(np.max(np.abs(np.asarray(measured, np.float64) - giou_reference(preds, targets))))


def test_giou_agrees_with_the_reference(run_kernel: Callable[..., Any]) -> None:
    """On the articles' 1024 x 256 boxes every value is within 1e-5 of float64."""
    preds, targets = boxes()
    measured = run_kernel(giou, rows(preds), rows(targets))
    assert measured.dtype == np.float32
    assert worst_error(measured, preds, targets) <= TOLERANCE


@pytest.mark.sim
def test_simulate_kernel_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """AWS's way in returns the same numbers, and shows the prints as they come."""
    preds, targets = boxes()
    measured = nki.simulate_kernel(giou, rows(preds), rows(targets))
    assert worst_error(measured, preds, targets) <= TOLERANCE
    np.testing.assert_array_equal(measured, nkitools.simulate(giou, rows(preds), rows(targets)).outputs)
    assert capsys.readouterr().out.count("preds [program 0, m=") == 8


@pytest.mark.parametrize("shape", [(1, 1), (127, 3), (128, 256), (129, 257), (256, 520)])
def test_sizes_that_are_no_multiple_of_the_tile(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """The last tiles are smaller, by their masks."""
    random = np.random.default_rng(1)
    near = random.uniform(0, 200, (2, *shape, 2))
    preds, targets = np.concatenate((near, near + random.uniform(1, 50, near.shape)), axis=-1).astype(np.float32)
    assert worst_error(run_kernel(giou, rows(preds), rows(targets)), preds, targets) <= TOLERANCE


def test_boxes_smaller_than_epsilon(run_kernel: Callable[..., Any]) -> None:
    """Unions and hulls whose area is less than epsilon count as epsilon."""
    near = np.random.default_rng(2).uniform(0, 2e-3, (2, 8, 4, 2))
    preds, targets = np.concatenate((near, near + 2e-3), axis=-1).astype(np.float32)
    assert worst_error(run_kernel(giou, rows(preds), rows(targets)), preds, targets) <= TOLERANCE


def test_the_kernel_prints_each_tile_it_loads(run_kernel: Callable[..., Any], device_prints: Any) -> None:
    """Each loaded tile of predictions is printed with its loop counters and the kernel's line."""
    preds, targets = boxes()
    run_kernel(giou, rows(preds), rows(targets))
    assert [each.loops for each in device_prints] == [{"m": m, "n": 0} for m in range(8)]
    assert {each.prefix for each in device_prints} == {"preds"}
    np.testing.assert_array_equal(device_prints[3].value, rows(preds)[384:512])
    assert device_prints[3].place().startswith("program 0, m=3, n=0, giou.py:")


@pytest.mark.sim
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return nl.maximum(high - low, 0)", "return high - low"),
        ("range((boxes + TILE_BOXES - 1) // TILE_BOXES)", "range((boxes - 1) // TILE_BOXES)"),
        ("range((batch + pmax - 1) // pmax)", "range((batch - 1) // pmax)"),
    ],
    ids=["no guard against negative overlap", "last column of tiles left out", "last row of tiles left out"],
)
def test_a_mistake_in_the_kernel_is_noticed(old: str, new: str) -> None:
    """Without the guard, or without the last tile, the kernel no longer agrees with the reference."""
    preds, targets = boxes()
    run = nkitools.simulate(mutant(kernel_module, old, new).giou, rows(preds), rows(targets), rules="report")
    assert not worst_error(run.outputs, preds, targets) <= TOLERANCE


@pytest.mark.sim
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("range((batch + pmax - 1) // pmax)", "range((batch - 1) // pmax)", "NK403"),
        ("result, mask=(rows < batch) & (found < boxes))", "result)", "NK402"),
        ("preds[rows, corners], mask=inside)", "preds[rows, corners])", "NK402"),
    ],
    ids=["last row of tiles left out", "store without its mask", "load without its mask"],
)
def test_a_mistake_is_reported_by_its_rule(old: str, new: str, rule: str) -> None:
    """Rows that were never written, and accesses beyond the end, are named."""
    preds, targets = (array[:200, :100] for array in boxes())
    with pytest.raises((nkitools.KernelError, IndexError)) as caught:
        nkitools.simulate(mutant(kernel_module, old, new).giou, rows(preds), rows(targets))
    assert caught.value.finding.rule == rule  # type: ignore[union-attr]
