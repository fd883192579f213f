import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((100, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=(i_p < 100))
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100) & (i_p >= 0))
    return out


inputs = (np.ones((100, 64), np.float32),)
