"""The legacy convolution against NumPy's einsum over windows in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from kernels.nki.legacy import conv2d as kernel_module
from kernels.nki.legacy.conv2d import conv2d
from tests.kernels.mutants import mutant

UNIT = 2.0**-24
# batch, in channels, height, width, out channels, filter height, filter width
SIZES = [
    (1, 1, 3, 3, 1, 3, 3),
    (2, 130, 11, 17, 131, 3, 2),
    (1, 3, 40, 600, 5, 1, 3),
    (2, 3, 30, 31, 5, 5, 5),
    (1, 128, 20, 20, 128, 1, 1),
]


def case(sizes: tuple[int, ...]) -> tuple[Any, Any]:
    """Images and filters of normally distributed numbers."""
    batch, in_channels, height, width, out_channels, filter_height, filter_width = sizes
    random = np.random.default_rng(0)
    images = random.standard_normal((batch, in_channels, height, width)).astype(np.float32)
    filters = random.standard_normal((out_channels, in_channels, filter_height, filter_width)).astype(np.float32)
    return images, filters


def convolved(images: Any, filters: Any) -> Any:
    """The convolution in float64."""
    windows = np.lib.stride_tricks.sliding_window_view(images.astype(np.float64), filters.shape[2:], axis=(2, 3))
    return np.einsum("bcyxhw,ochw->boyx", windows, filters.astype(np.float64), optimize=True)


@pytest.mark.parametrize("sizes", SIZES)
def test_conv2d(run_kernel: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    """Within the bound of a float32 sum of in channels x filter size products."""
    images, filters = case(sizes)
    terms = filters[0].size + 1
    error = np.abs(run_kernel(conv2d, images, filters) - convolved(images, filters))
    assert np.all(error <= terms * UNIT * convolved(np.abs(images), np.abs(filters)))


@pytest.mark.sim
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t * tile_height + row + y", "t * tile_height + y"),
        (
            "for i_tile in nl.affine_range(in_tiles):\n                            for row",
            "for i_tile in [0]:\n" + 28 * " " + "for row",
        ),
    ],
    ids=["a tap reads the wrong row", "half of the channels"],
)
def test_a_wrong_tap_is_a_wrong_result(old: str, new: str) -> None:
    """The comparison does not pass by chance."""
    images, filters = case(SIZES[1])
    wrong = nkitools.simulate(mutant(kernel_module, old, new).conv2d, images, filters, rules="report").outputs
    assert not np.allclose(wrong, convolved(images, filters), atol=1e-3)


@pytest.mark.sim
def test_channels_that_were_never_loaded_are_found() -> None:
    """Without the zeros below the last channel the matmul reads what nothing wrote (NK405)."""
    images, filters = case(SIZES[1])
    wrong = mutant(kernel_module, "image = nl.zeros(", "image = nl.ndarray(").conv2d
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(wrong, images, filters)
    assert caught.value.finding.rule == "NK405"
