import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((nl.par_dim(128), 1, 64), dtype=x.dtype, buffer=nl.sbuf)
    tiles[:, 0, :] = nl.load(x)
    nl.store(out, tiles[:, 0, :])
    return out


inputs = (np.ones((128, 64), np.float32),)
