"""Arrays as the model's framework has them: torch's tensors where torch is installed, NumPy's arrays elsewhere."""

import importlib.util

import numpy as np


def tensors(shape, count=1, seed=0):
    """Return ``count`` float32 tensors of normal values."""
    arrays = np.random.default_rng(seed).standard_normal((count, *shape), np.float32)
    if importlib.util.find_spec("torch") is None:
        return tuple(arrays)
    import torch

    return tuple(torch.from_numpy(each.copy()) for each in arrays)


def as_numpy(x):
    """Return a tensor as an array of float64."""
    return np.asarray(x, np.float64)
