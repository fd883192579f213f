import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, index):
    out = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    index_tile = nl.load(index)
    gathered = nl.ndarray((x.shape[0], 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(dst=gathered, src_buffer=x_tile, index=index_tile)
    nisa.dma_copy(dst=out, src=gathered)
    return out


inputs = (np.ones((16, 64), np.float32), np.zeros((16, 2), np.uint16))
