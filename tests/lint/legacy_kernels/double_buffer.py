"""Two tiles of a block dimension, one for each half of the rows."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((2, nl.par_dim(128), x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    ip, jf = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
    for b in nl.affine_range(2):
        tiles[b, ip, jf] = nl.load(x[b * 128 + ip, jf])
    for b in nl.affine_range(2):
        scaled = tiles[b, ip, jf] * 0.5
        nl.store(out[b * 128 + ip, jf], scaled)
    return out


inputs = (np.linspace(-3, 3, 256 * 32, dtype=np.float32).reshape(256, 32),)
