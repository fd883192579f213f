import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in range(256):
        row = tile[:, nl.ds(i * 128, 128)]
        nisa.tensor_scalar(dst=row, data=row, op0=nl.multiply, operand0=2.0)  # NK702
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((1, 256 * 128), np.float32),)
