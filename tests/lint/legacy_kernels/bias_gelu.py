"""A row is added to each row, then gelu."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, bias):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(x.shape[1])[None, :]
    b = nl.load(bias[nl.arange(1)[:, None], i_f])
    wide = b.broadcast_to((128, x.shape[1]))
    for m in nl.affine_range(x.shape[0] // 128):
        t = nl.load(x[m * 128 + i_p, i_f])
        y = nl.gelu(t + wide)
        nl.store(out[m * 128 + i_p, i_f], y)
    return out


inputs = (
    np.linspace(-2, 2, 256 * 64, dtype=np.float32).reshape(256, 64),
    np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 64),
)
