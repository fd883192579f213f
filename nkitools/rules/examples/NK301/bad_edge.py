import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, bits):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    masked = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=masked, data1=tile, data2=nl.load(bits), op=nl.bitwise_and)  # NK301
    nisa.dma_copy(dst=out, src=masked)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 64), np.int32))
