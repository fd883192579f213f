import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    factor = nl.load(scale)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=factor)  # NK111
    nisa.dma_copy(dst=out, src=scaled)
    return out


inputs = (np.ones((2, 64), np.float32), np.ones((1, 1), np.float32))
