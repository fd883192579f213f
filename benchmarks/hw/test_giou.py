"""GIoU of 1024 x 256 pairs of boxes: every implementation on its device, side by side in one table.

Each is a kernel by itself: compiled before the first round, its arguments on the device, and each round ends when the
device has finished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.reference import boxes, giou_reference

# Intersection 9, areas and union 8, enclosing box 7, quotients and their guards 6.
OPERATIONS_A_PAIR = 30
TOLERANCE = 1e-5
SMALLEST_AREA = 1e-5


def nki() -> Any:
    """The NKI kernel of this repository."""
    from kernels.nki.giou import giou

    return giou


def cpp() -> Any:
    """The custom C++ operator, on all GpSimd cores."""
    from cpp_ops.giou import build

    return build.library().giou


def torch_xla() -> Any:
    """The framework's own operations on a NeuronCore, as one graph."""
    torch = pytest.importorskip("torch")

    class Giou(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, preds: Any, targets: Any) -> Any:
            return composed(torch, preds, targets)

    return Giou()


def pallas() -> Any:
    """The Pallas kernel of this repository."""
    pytest.importorskip("jax")
    from kernels.pallas.giou import giou

    return giou


def jax_xla() -> Any:
    """The framework's own operations on a TPU or GPU, as XLA fuses them."""
    jax = pytest.importorskip("jax")

    def giou(preds: Any, targets: Any) -> Any:
        return composed(jax.numpy, preds, targets)

    return jax.jit(giou)


def composed(library: Any, preds: Any, targets: Any) -> Any:
    """GIoU out of a framework's element-wise operations; boxes [..., 4] to scores [...]."""
    low, high = library.maximum(preds[..., :2], targets[..., :2]), library.minimum(preds[..., 2:], targets[..., 2:])
    far, near = library.maximum(preds[..., 2:], targets[..., 2:]), library.minimum(preds[..., :2], targets[..., :2])
    sides = library.clip(high - low, 0, None)
    intersection = sides[..., 0] * sides[..., 1]
    extents = [boxes[..., 2:] - boxes[..., :2] for boxes in (preds, targets)]
    union = sum(extent[..., 0] * extent[..., 1] for extent in extents) - intersection
    enclosing = (far - near)[..., 0] * (far - near)[..., 1]
    empty = (enclosing - union) / library.clip(enclosing, SMALLEST_AREA, None)
    return intersection / library.clip(union, SMALLEST_AREA, None) - empty


@pytest.mark.hw
@pytest.mark.benchmark(group="giou")
@pytest.mark.parametrize("implementation", [nki, cpp, torch_xla, pallas, jax_xla], ids=lambda made: made.__name__)
def test_giou(kernel_benchmark: Callable[..., Any], implementation: Callable[[], Any]) -> None:
    """Right to 1e-5 of float64, and then its time."""
    preds, targets = boxes()
    operations = OPERATIONS_A_PAIR * preds.shape[0] * preds.shape[1]
    scores = kernel_benchmark(implementation(), preds, targets, operations=operations)
    assert np.max(np.abs(np.asarray(scores, np.float64) - giou_reference(preds, targets))) <= TOLERANCE
