import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    logarithms = nl.log(tile)
    nl.store(out, logarithms)
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64) + 1.0,)
