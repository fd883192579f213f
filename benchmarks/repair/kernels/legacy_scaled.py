"""Rows by a column of scales, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, scales):
    rows = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in nl.affine_range(rows // 128):
        tile = nl.load(x[t * 128 : (t + 1) * 128, :])
        scale = nl.load(scales[t * 128 : (t + 1) * 128, :])
        scaled = nl.multiply(tile, scale)
        result = nl.add(scaled, 1.0)
        nl.store(out[t * 128 : (t + 1) * 128, :], result)
    return out


def reference(x, scales):
    return x * scales + 1


_random = np.random.default_rng(26)
inputs = (_random.random((256, 60), np.float32), _random.random((256, 1), np.float32))
tolerance = (1e-5, 1e-6)
