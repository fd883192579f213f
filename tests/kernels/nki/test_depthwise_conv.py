"""The depthwise convolutions against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import depthwise_conv as kernel_module
from kernels.nki.depthwise_conv import depthwise_conv1d, depthwise_conv2d
from tests.kernels.mutants import mutant

TOLERANCE = 1e-5


def normal(*shape: int) -> npt.NDArray[np.float32]:
    """Reproducible input."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def reference(data: Any, weights: Any, padding: tuple[tuple[int, int], ...]) -> npt.NDArray[np.float64]:
    """Every window of the padded data, of the last ``len(padding)`` dimensions, times its channel's filter."""
    dims = tuple(range(2, 2 + len(padding)))
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), *padding))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[1:], axis=dims)
    taps = tuple(range(-len(padding), 0))
    filters = weights.astype(np.float64).reshape(len(weights), *[1] * len(padding), *weights.shape[1:])
    return np.asarray((windows * filters).sum(axis=taps))


def causal(data: Any, weights: Any) -> npt.NDArray[np.float64]:
    """The 1-D reference."""
    return reference(data, weights, ((weights.shape[1] - 1, 0),))


def centred(data: Any, weights: Any) -> npt.NDArray[np.float64]:
    """The 2-D reference."""
    down, across = (size // 2 for size in weights.shape[1:])
    return reference(data, weights, ((down, down), (across, across)))


@pytest.mark.parametrize(("shape", "taps"), [((1, 1, 1), 1), ((2, 128, 2048), 4), ((1, 130, 2050), 3), ((2, 5, 3), 7)])
def test_conv1d(run_kernel: Callable[..., Any], shape: tuple[int, int, int], taps: int) -> None:
    """Any number of channels and taps, also more taps than there are elements."""
    data, weights = normal(*shape), normal(shape[1], taps)
    np.testing.assert_allclose(run_kernel(depthwise_conv1d, data, weights), causal(data, weights), atol=TOLERANCE)


@pytest.mark.parametrize(
    ("shape", "taps"),
    [
        ((1, 1, 1, 1), (1, 1)), ((2, 128, 16, 16), (3, 3)), ((1, 130, 90, 70), (3, 5)), ((1, 3, 2, 4096), (7, 7)),
        ((1, 2, 20, 4000), (1, 3)),
    ],
)  # fmt: skip
def test_conv2d(run_kernel: Callable[..., Any], shape: tuple[int, int, int, int], taps: tuple[int, int]) -> None:
    """Images of one band and of several, whose last is smaller, or that no memory holds; large filters."""
    data, weights = normal(*shape), normal(shape[1], *taps)
    np.testing.assert_allclose(run_kernel(depthwise_conv2d, data, weights), centred(data, weights), atol=TOLERANCE)


@pytest.mark.parametrize(
    ("taps", "channels", "width"), [((2, 3), 4, 5), ((3, 2), 4, 5), ((3, 3), 3, 5), ((3, 3), 4, 4097)]
)
def test_sizes_that_are_refused(taps: tuple[int, int], channels: int, width: int) -> None:
    """Filters of even sizes or for other channels, and rows too wide, are assertions of the kernel."""
    with pytest.raises(AssertionError, match=r"must|may"):
        nkitools.simulate(depthwise_conv2d, normal(1, 4, 2, width), normal(channels, *taps))


MISTAKES = {
    "the first tap counted only": ("for tap in range(1, len(windows))", "for tap in range(1, 1)"),
    "each tap multiplies by its neighbour": ("weights[:, tap : tap + 1]", "weights[:, tap - 1 : tap]"),
    "the last, smaller tile of channels left out": ("range(0, channels, pmax)", "range(0, channels - pmax + 1, pmax)"),
    "no rows from the band before": ("max(0, first - above), min", "first, min"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison tells of it."""
    data, weights = normal(1, 130, 80, 70), normal(130, 3, 3)
    broken = mutant(kernel_module, *MISTAKES[mistake]).depthwise_conv2d
    measured = nkitools.simulate(broken, data, weights, rules="report").outputs
    assert not np.allclose(measured, centred(data, weights), atol=1e-3)


def test_a_halo_left_unwritten_is_reported() -> None:
    """Without the zeros before the start the first outputs read what nothing wrote (NK401)."""
    broken = mutant(kernel_module, "if missing:", "if missing > 99:").depthwise_conv1d
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(broken, normal(1, 4, 20), normal(4, 3))
    assert caught.value.finding.rule == "NK401"
