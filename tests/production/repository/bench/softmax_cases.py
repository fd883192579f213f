"""How old_softmax is called, and what it should give."""

import numpy as np
from ranker.scores.old import old_softmax as old_softmax
from ranker.tensors import as_numpy, tensors


def inputs(rows=130, columns=32):
    """Return scores."""
    return tensors((rows, columns))


def reference(scores):
    """Return the same by NumPy."""
    powers = np.exp(as_numpy(scores))
    return powers / powers.sum(axis=1, keepdims=True)
