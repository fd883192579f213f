import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def product(left_t, right):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
    a = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    doubled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        rows = min(128, left_t.shape[0] - k * 128)
        nisa.dma_copy(dst=a[0:rows, :], src=left_t[k * 128 : k * 128 + rows, :])
        nisa.dma_copy(dst=b[0:rows, :], src=right[k * 128 : k * 128 + rows, :])
        nisa.tensor_scalar(dst=doubled, data=b, op0=nl.multiply, operand0=2.0)
        nisa.nc_matmul(dst=total, stationary=a, moving=doubled)  # NK511
    tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


kernel = product
inputs = (np.ones((192, 128), np.float32), np.ones((192, 64), np.float32))
