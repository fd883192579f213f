import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in range(256):
        column = tile[:, nl.ds(i * 8, 8)]
        nisa.tensor_scalar(dst=column, data=column, op0=nl.multiply, operand0=2.0)  # NK702
    nisa.dma_copy(dst=out, src=tile[0:64, 0:256])
    return out


inputs = (np.ones((64, 256 * 8), np.float32),)
