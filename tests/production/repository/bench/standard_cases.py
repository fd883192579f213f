"""How standard_norm is called, and what it should give."""

from ranker.norms import standard_norm as standard_norm
from ranker.tensors import as_numpy, tensors


def inputs(rows=64, columns=48):
    """Return x."""
    return tensors((rows, columns))


def reference(x, epsilon=1e-5):
    """Return the same by NumPy."""
    wide = as_numpy(x)
    return (wide - wide.mean(axis=1, keepdims=True)) / (wide.var(axis=1, keepdims=True) + epsilon) ** 0.5
