import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((100, 60), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.load(x[i_p, i_f], mask=(i_p < 100) & (i_f < 60))
    nl.store(out[i_p, i_f], tile, mask=(i_p < 100) & (i_f < 60))
    return out


inputs = (np.ones((100, 60), np.float32),)
