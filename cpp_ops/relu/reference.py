"""ReLU and its gradient in NumPy, as torch has them: NaN stays NaN, and zero has no sign."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def relu_forward(values: Floats) -> Floats:
    """float32 of any shape; the same shape."""
    # Of -0.0 and 0.0 maximum may give either; -0.0 + 0.0 is 0.0, and adding it changes nothing else.
    return np.maximum(values, np.float32(0)) + np.float32(0)


def relu_backward(gradient: Floats, values: Floats) -> Floats:
    """The gradient where the value is above 0 or NaN, elsewhere 0."""
    return np.where(np.logical_not(values <= 0), gradient, np.float32(0))
