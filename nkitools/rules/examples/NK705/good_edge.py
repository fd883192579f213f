import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, w):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        tile = nl.ndarray((128, 4096), dtype=x.dtype, buffer=nl.sbuf)
        weight = nl.ndarray(w.shape, dtype=w.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=weight, src=w)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 4096, 4096)])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=weight)
        nisa.dma_copy(dst=out[:, nl.ds(i * 4096, 4096)], src=tile)
    return out


inputs = (np.ones((128, 32768), np.float32), np.ones((128, 1), np.float32))
