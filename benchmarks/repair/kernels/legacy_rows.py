"""Exponentials of rows, the last tile masked, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(64)[None, :]
    for i in nl.affine_range((x.shape[0] + 127) // 128):
        tile = nl.load(x[i * 128 + i_p, i_f], mask=(i * 128 + i_p < x.shape[0]))
        nl.store(out[i * 128 + i_p, i_f], nl.exp(tile), mask=(i * 128 + i_p < x.shape[0]))
    return out


def reference(x):
    return np.exp(x)


inputs = (np.random.default_rng(8).random((200, 64), np.float32),)
tolerance = (1e-4, 1e-5)
