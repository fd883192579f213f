import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    y_tile = nl.load(y)
    total = nl.add(x_tile, y_tile)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
