import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 9 * 512), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(9)]
    for k in range(2):
        stationary, moving = nl.load(a[k]), nl.load(b[k])
        for n, columns in enumerate(sums):
            part = moving[:, n * 512 : (n + 1) * 512]
            nisa.nc_matmul(dst=columns, stationary=stationary, moving=part, accumulate=k > 0)  # NK203
    for n, columns in enumerate(sums):
        result = nl.copy(columns)
        nisa.dma_copy(dst=out[:, n * 512 : (n + 1) * 512], src=result)
    return out


inputs = (np.ones((2, 128, 128), np.float32), np.ones((2, 128, 9 * 512), np.float32))
