"""Kernels of the gallery against NumPy in float64, in sizes that fill tiles and sizes that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from kernels import gallery, references
from kernels.nki.conv import conv1d, conv2d, max_pool2d
from kernels.nki.layer_norm import layer_norm
from kernels.nki.reduce_scatter_matmul import reduce_scatter_matmul
from kernels.nki.state_space_scan import state_space_scan
from tests.cases import cases

CASES = [
    (layer_norm, references.layer_norm, ((1, 2), (2,), (2,))),
    (layer_norm, references.layer_norm, ((130, 513), (513,), (513,))),
    (state_space_scan, references.state_space_scan, ((1, 1), (1, 1))),
    (state_space_scan, references.state_space_scan, ((130, 2049), (130, 2049))),
    (conv1d, references.conv1d, ((1, 1, 1), (1, 1, 1))),
    (conv1d, references.conv1d, ((2, 130, 520), (129, 130, 3))),
    (conv2d, references.conv2d, ((1, 1, 1, 1), (1, 1, 1, 1))),
    (conv2d, references.conv2d, ((2, 130, 4, 5), (129, 130, 3, 2))),
    (conv2d, references.conv2d, ((1, 2, 2, 520), (3, 2, 1, 3))),
    (max_pool2d, references.max_pool2d, ((1, 1, 2, 2),)),
    (max_pool2d, references.max_pool2d, ((2, 129, 5, 7),)),
]


@pytest.mark.parametrize(
    ("kernel", "reference", "shapes"), CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_a_kernel_agrees(run_kernel: Callable[..., Any], kernel: Any, reference: Any, shapes: Any) -> None:
    """To five digits of the largest value."""
    random = np.random.default_rng(len(shapes))
    arrays = [random.uniform(-0.9, 0.9, shape).astype(np.float32) for shape in shapes]
    outputs = run_kernel(kernel, *arrays)
    assert gallery.relative_error(outputs, reference(*arrays)) <= 1e-5


@pytest.mark.parametrize(("ranks", "rows"), [(2, 2), (2, 260), (3, 9)])
def test_ranks_share_the_rows_of_a_sum(ranks: int, rows: int) -> None:
    """Each rank has its part of the rows of all partial products."""
    random = np.random.default_rng(rows)
    parts = [
        tuple(random.standard_normal(shape, np.float32) for shape in ((130, rows), (130, 520))) for _ in range(ranks)
    ]
    run = nkitools.simulate(reduce_scatter_matmul, *((*part, ranks) for part in parts), ranks=ranks)
    expected = sum(references.product(*part) for part in parts)
    assert gallery.relative_error(np.concatenate(run.outputs), expected) <= 1e-5


SIZE = st.integers(1, 140)
SMALL = st.integers(1, 5)


def shapes_of(name: str, draw: Callable[[Any], int]) -> tuple[tuple[int, ...], ...]:
    """Shapes that a kernel takes, small ones and some that pass the 128 partitions."""
    if name == "layer_norm":
        rows, size = draw(SIZE), draw(st.integers(2, 600))
        return (rows, size), (size,), (size,)
    if name == "state_space_scan":
        return ((draw(SIZE), draw(SIZE)),) * 2
    batch, channels, outputs, high, wide = draw(SMALL), draw(SIZE), draw(SIZE), draw(SMALL), draw(SMALL)
    if name == "conv1d":
        return (batch, channels, wide + draw(SIZE)), (outputs, channels, wide)
    if name == "conv2d":
        return (1, channels, high + draw(SMALL), wide + draw(SMALL)), (outputs, channels, high, wide)
    return ((batch, channels, 2 + high, 2 + wide),)


@settings(max_examples=cases(100))
@given(data=st.data())
@pytest.mark.parametrize("kernel", [layer_norm, state_space_scan, conv1d, conv2d, max_pool2d], ids=lambda k: k.__name__)
def test_a_kernel_takes_any_shape(data: Any, kernel: Any) -> None:
    """The same for drawn shapes, on a drawn chip."""
    shapes = shapes_of(kernel.__name__, data.draw)
    random = np.random.default_rng(data.draw(st.integers(0, 9)))
    arrays = [random.uniform(-0.9, 0.9, shape).astype(np.float32) for shape in shapes]
    run = nkitools.simulate(kernel, *arrays, chip=data.draw(st.sampled_from(["trn1", "trn2", "trn3"])))
    assert gallery.relative_error(run.outputs, getattr(references, kernel.__name__)(*arrays)) <= 2e-5
    assert [each.rule for each in run.findings if each.severity != "hint"] == []


def test_prints_show_moments() -> None:
    """Mean and variance of each tile of rows."""
    rows = np.random.default_rng(0).standard_normal((130, 64), np.float32)
    prints = nkitools.simulate(layer_norm, rows, np.ones(64, np.float32), np.zeros(64, np.float32)).prints
    moments = np.concatenate([each.value for each in prints])
    np.testing.assert_allclose(moments, np.stack([rows.mean(1), rows.var(1)], axis=1), rtol=1e-4, atol=1e-6)


def test_prints_show_where_the_scan_goes_on() -> None:
    """The last state of each piece of 2048 steps, but for the last piece, with which nothing goes on."""
    decay, drive = np.random.default_rng(0).random((2, 2, 4100), np.float32)
    run = nkitools.simulate(state_space_scan, decay, drive)
    assert len(run.prints) == 2
    for number, each in enumerate(run.prints, 1):
        np.testing.assert_array_equal(each.value[:, 0], run.outputs[:, 2048 * number - 1])
