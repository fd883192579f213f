import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype)
    for i in nl.sequential_range(2):
        tile[...] = nl.load(x[i])
    nl.store(out, tile)
    return out


inputs = (np.ones((2, 128, 64), np.float32),)
