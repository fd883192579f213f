"""Kernels of the gallery against NumPy in float64, in sizes that fill tiles and sizes that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from kernels import gallery
from kernels.nki.conv import conv1d, max_pool2d
from kernels.nki.layer_norm import layer_norm
from kernels.nki.reduce_scatter_matmul import reduce_scatter_matmul
from kernels.nki.state_space_scan import state_space_scan

CASES = [
    (layer_norm, gallery.layer_norm, ((1, 2), (2,), (2,))),
    (layer_norm, gallery.layer_norm, ((130, 513), (513,), (513,))),
    (state_space_scan, gallery.state_space_scan, ((1, 1), (1, 1))),
    (state_space_scan, gallery.state_space_scan, ((130, 2049), (130, 2049))),
    (conv1d, gallery.conv1d, ((1, 1, 1), (1, 1, 1))),
    (conv1d, gallery.conv1d, ((2, 130, 520), (129, 130, 3))),
    (max_pool2d, gallery.max_pool2d, ((1, 1, 2, 2),)),
    (max_pool2d, gallery.max_pool2d, ((2, 129, 5, 7),)),
]


@pytest.mark.parametrize(
    ("kernel", "reference", "shapes"), CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_a_kernel_agrees(run_kernel: Callable[..., Any], kernel: Any, reference: Any, shapes: Any) -> None:
    """To five digits of the largest value, with no finding."""
    random = np.random.default_rng(len(shapes))
    arrays = [random.uniform(-0.9, 0.9, shape).astype(np.float32) for shape in shapes]
    outputs = run_kernel(kernel, *arrays)
    assert gallery.relative_error(outputs, reference(*arrays)) <= 1e-5
    assert [each.rule for each in run_kernel.run.findings if each.severity != "hint"] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(("ranks", "rows"), [(2, 2), (2, 260), (3, 9)])
def test_ranks_share_the_rows_of_a_sum(ranks: int, rows: int) -> None:
    """Each rank has its part of the rows of all partial products."""
    random = np.random.default_rng(rows)
    parts = [
        tuple(random.standard_normal(shape, np.float32) for shape in ((130, rows), (130, 520))) for _ in range(ranks)
    ]
    run = nkitools.simulate(reduce_scatter_matmul, *((*part, ranks) for part in parts), ranks=ranks)
    expected = sum(gallery.product(*part) for part in parts)
    assert gallery.relative_error(np.concatenate(run.outputs), expected) <= 1e-5
