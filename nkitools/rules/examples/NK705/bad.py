import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, w):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        tile = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
        weight = nl.ndarray(w.shape, dtype=w.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=weight, src=w)  # NK705
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * 2048, 2048)])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=weight, op=nl.multiply)
        nisa.dma_copy(dst=out[:, nl.ds(i * 2048, 2048)], src=tile)
    return out


inputs = (np.ones((128, 16384), np.float32), np.ones((128, 2048), np.float32))
