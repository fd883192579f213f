import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:64]
    tile = nl.add(nl.load(x[i_p, i_f]), nl.load(x[i_p, i_f + 1]))
    nl.store(out[i_p, i_f], tile)
    return out


inputs = (np.ones((128, 65), np.float32),)
