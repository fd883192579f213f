"""How rms_norm is called, and what it should give: the companion of src/ranker/norms/rms.py."""

import numpy as np
from ranker.norms.rms import rms_norm as rms_norm
from ranker.tensors import as_numpy, tensors

space = {"rows": [64, 130], "columns": [48, 64]}


def inputs(rows=130, columns=64, seed=0):
    """Return x and weight."""
    (x,), (weight,) = tensors((rows, columns), seed=seed), tensors((1, columns), seed=seed + 1)
    return x, weight


def reference(x, weight, epsilon=1e-6):
    """Return the same by NumPy."""
    wide = as_numpy(x)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + epsilon) * as_numpy(weight)
