import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 8 * 512), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary, moving = nl.load(a), nl.load(b)
    sums = []
    for n in range(8):
        columns = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=columns, stationary=stationary, moving=moving[:, n * 512 : (n + 1) * 512])
        sums.append(columns)
    for n, columns in enumerate(sums):
        result = nl.copy(columns)
        nisa.dma_copy(dst=out[:, n * 512 : (n + 1) * 512], src=result)
    return out


inputs = (np.ones((128, 128), np.float32), np.ones((128, 8 * 512), np.float32))
