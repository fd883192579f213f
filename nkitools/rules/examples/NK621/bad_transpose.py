import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    turned = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.nc_transpose(dst=turned, data=tile, engine=nisa.engine.vector)  # NK621
    nisa.dma_copy(dst=out, src=turned)
    return out


inputs = (np.ones((32, 64), np.float32),)
