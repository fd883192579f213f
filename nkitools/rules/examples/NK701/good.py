import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    for i in range(16):
        columns = nl.ds(i * 512, 512)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 8192), np.float32),)
