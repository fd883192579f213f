"""Each row of a matrix less its mean: a kernel to start from."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def template_name(x):
    """Return x [rows, columns], float32, less the mean of each row; a row must fit into a partition of SBUF."""
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)  # the last tile may be lower
        tile = nl.load(x[start : start + height, :])
        mean = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mean, op=nl.add, data=tile, axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / columns)
        nl.device_print("mean", mean)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=mean)
        nisa.dma_copy(dst=out[start : start + height, :], src=tile)
    return out


def reference(x):
    """Return the same, computed by NumPy in float64."""
    wide = x.astype(np.float64)
    return wide - wide.mean(axis=1, keepdims=True)


def inputs():
    """Return the arguments that `nkitools estimate` and `nkitools compare` take."""
    return (np.random.default_rng(0).standard_normal((300, 512), np.float32),)
