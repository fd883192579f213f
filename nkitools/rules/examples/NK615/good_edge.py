import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.subtract(tile, 8.0))
    return out


inputs = (np.arange(128 * 64, dtype=np.float32).reshape(128, 64),)
