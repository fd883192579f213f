import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        rows = nl.ds(i * nl.tile_size.pmax, nl.tile_size.pmax)
        tile = nl.load(x[rows, :])
        nl.store(out[rows, :], tile)
    return out


inputs = (np.ones((256, 64), np.float32),)
