"""Each row of a matrix less its mean: a kernel of the legacy dialect to start from."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def template_name(x):
    """Return x [rows, columns], float32, less the mean of each row; a row must fit into a partition of SBUF."""
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    row = nl.arange(pmax)[:, None]
    column = nl.arange(columns)[None, :]
    for m in nl.affine_range((rows + pmax - 1) // pmax):
        inside = m * pmax + row < rows  # the last tile may be lower
        tile = nl.load(x[m * pmax + row, column], mask=inside)
        mean = nl.mean(tile, axis=1, keepdims=True, mask=inside)
        nl.device_print("mean", mean, mask=inside)
        nl.store(out[m * pmax + row, column], nl.subtract(tile, mean, mask=inside), mask=inside)
    return out


def reference(x):
    """Return the same, computed by NumPy in float64."""
    wide = x.astype(np.float64)
    return wide - wide.mean(axis=1, keepdims=True)


def inputs():
    """Return the arguments that `nkitools estimate` and `nkitools compare` take."""
    return (np.random.default_rng(0).standard_normal((300, 512), np.float32),)
