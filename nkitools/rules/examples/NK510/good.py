import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    moved = nl.ndarray((128, 511), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=moved, src=tile[:, 0:511])
    nisa.tensor_copy(dst=tile[:, 1:512], src=moved)
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 512), np.float32),)
