"""What the GIoU kernels are compared with: the articles' boxes, and GIoU in float64, written apart from any kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH, BOXES, IMAGE = 1024, 256, 256
EPSILON = 1e-5


def boxes() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Two batches of 1024 x 256 boxes (left, top, right, bottom), drawn as in the articles: seed 0, clipped to 255."""
    np.random.seed(0)
    batches = []
    for _ in range(2):
        sizes = np.random.randint(1, IMAGE, size=(BATCH, BOXES, 2))
        near = np.random.randint(0, IMAGE - 1, size=(BATCH, BOXES, 2))
        far = np.clip(near + sizes, 0, IMAGE - 1)
        batches.append(np.concatenate((near, far), axis=2).astype(np.float32))
    return batches[0], batches[1]


def giou_reference(preds: npt.NDArray[np.float32], targets: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """GIoU of boxes [..., 4] in float64; areas of union and enclosing box count as at least 1e-5."""
    first, second = preds.astype(np.float64), targets.astype(np.float64)

    def area(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.prod(np.clip(high - low, 0, None), axis=-1)

    overlap = area(np.maximum(first[..., :2], second[..., :2]), np.minimum(first[..., 2:], second[..., 2:]))
    hull = area(np.minimum(first[..., :2], second[..., :2]), np.maximum(first[..., 2:], second[..., 2:]))
    union = (
        np.prod(first[..., 2:] - first[..., :2], axis=-1)
        + np.prod(second[..., 2:] - second[..., :2], axis=-1)
        - overlap
    )
    return overlap / np.maximum(union, EPSILON) - (hull - union) / np.maximum(hull, EPSILON)
