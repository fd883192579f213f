"""Each row of a matrix less its mean: a Pallas kernel for TPUs to start from."""

import jax
import numpy as np
from jax.experimental import pallas as pl

ROWS = 8  # of a block: float32 tiles of a TPU are 8 x 128


def _block(x_ref, out_ref):
    x = x_ref[...]
    out_ref[...] = x - x.mean(axis=1, keepdims=True)


def template_name(x):
    """Return x [rows, columns], float32, less the mean of each row; rows in blocks of 8, columns a multiple of 128."""
    block = pl.BlockSpec((ROWS, x.shape[1]), lambda row: (row, 0))
    return pl.pallas_call(
        _block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // ROWS,),
        in_specs=[block],
        out_specs=block,
    )(x)


def reference(x):
    """Return the same, computed by NumPy in float64."""
    wide = x.astype(np.float64)
    return wide - wide.mean(axis=1, keepdims=True)


def inputs():
    """Return the arguments that `nkitools compare` takes."""
    return (np.random.default_rng(0).standard_normal((64, 256), np.float32),)
