import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, row):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = nl.load(x)
    row_tile = nl.load(row)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=x_tile, data2=row_tile, op=nl.add)  # NK111
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((1, 64), np.float32))
