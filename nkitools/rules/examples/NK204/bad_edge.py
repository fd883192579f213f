import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 0))
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf, address=(0, 252))
    nisa.dma_copy(dst=first, src=x)
    nisa.dma_copy(dst=second, src=y)
    nisa.tensor_tensor(dst=second, data1=first, data2=second, op=nl.add)  # NK204
    nisa.dma_copy(dst=out, src=second)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.float32))
