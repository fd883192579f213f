"""The sums of four groups of columns, element by element of a tile."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.baremetal
def kernel(x):
    out = nl.ndarray((x.shape[0], 4), dtype=x.dtype, buffer=nl.shared_hbm)
    acc = nl.zeros((nl.par_dim(128), 4), dtype=nl.float32, buffer=nl.sbuf)
    i_p = nl.arange(128)[:, None]
    one = nl.arange(1)[None, :]
    f = nl.arange(16)[None, :]
    t = nl.load(x)
    for g in nl.sequential_range(4):
        acc[i_p, g + one] = nl.sum(t[i_p, g * 16 + f], axis=1, keepdims=True)
    nl.store(out, acc)
    return out


inputs = (np.linspace(-3, 3, 128 * 64, dtype=np.float32).reshape(128, 64),)
