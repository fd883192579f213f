import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in range(2):
        columns = nl.ds(i * 32, 32)
        turned = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=tile[:, columns], engine=nisa.engine.vector)
        nisa.dma_copy(dst=out[columns, :], src=turned)
    return out


inputs = (np.ones((32, 64), np.float32),)
