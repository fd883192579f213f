import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:127, :], src=x[0:127, :])
    nisa.dma_copy(dst=tile[127:128, 0:63], src=x[127:128, 0:63])
    nisa.dma_copy(dst=out, src=tile)  # NK401
    return out


inputs = (np.ones((128, 64), np.float32),)
