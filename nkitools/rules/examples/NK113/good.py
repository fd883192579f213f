import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, index):
    out = nl.ndarray((24, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.zeros((32, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_tile[0:24, :], src=x)
    index_tile = nl.zeros((32, 2), dtype=index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index_tile[0:24, :], src=index)
    gathered = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)
    nisa.dma_copy(dst=out, src=gathered[0:24, :])
    return out


inputs = (np.ones((24, 64), np.float32), np.zeros((24, 2), np.uint16))
