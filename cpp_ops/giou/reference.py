"""GIoU in NumPy, in float32 and in the operator's own order of operations: the two agree bit by bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SMALLEST_AREA = np.float32(1e-5)

Floats = npt.NDArray[np.float32]


def giou(preds: Floats, targets: Floats) -> Floats:
    """float32 boxes (left, top, right, bottom) [..., 4] of one shape to float32 scores [...]."""
    corners = [array[..., corner] for array in (preds, targets) for corner in range(4)]
    left, top, right, bottom, other_left, other_top, other_right, other_bottom = corners

    width = np.maximum(np.minimum(right, other_right) - np.maximum(left, other_left), np.float32(0))
    height = np.maximum(np.minimum(bottom, other_bottom) - np.maximum(top, other_top), np.float32(0))
    intersection = width * height
    union = (right - left) * (bottom - top) + (other_right - other_left) * (other_bottom - other_top) - intersection

    outer_width = np.maximum(right, other_right) - np.minimum(left, other_left)
    outer_height = np.maximum(bottom, other_bottom) - np.minimum(top, other_top)
    enclosing = outer_width * outer_height

    overlap = intersection / np.maximum(union, SMALLEST_AREA)
    scores: Floats = overlap - (enclosing - union) / np.maximum(enclosing, SMALLEST_AREA)
    return scores
