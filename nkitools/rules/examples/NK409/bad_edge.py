import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(tile, 0)
    nisa.dma_copy(x, tile)  # NK409
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


kernel = doubled
inputs = (np.ones((128, 64), np.float32),)
