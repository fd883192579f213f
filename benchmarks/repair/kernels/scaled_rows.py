"""Rows times two, tile by tile."""

import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range((x.shape[0] + 127) // 128):
        rows = nl.ds(i * 128, min(128, x.shape[0] - i * 128))
        tile = nl.load(x[rows, :])
        nl.store(out[rows, :], nl.multiply(tile, 2.0))
    return out


def reference(x):
    return 2 * x


inputs = (np.random.default_rng(0).random((300, 64), np.float32),)
tolerance = (1e-5, 1e-6)
