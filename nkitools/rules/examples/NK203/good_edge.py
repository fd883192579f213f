import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    banks = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for _ in range(7)]
    column = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary, moving = nl.load(a[k]), nl.load(b[k])
        for bank in banks:
            nisa.nc_matmul(dst=bank, stationary=stationary, moving=moving, accumulate=k > 0)
        nisa.nc_matmul(dst=column, stationary=stationary, moving=moving[:, 0:1], accumulate=k > 0)
    for n, each in enumerate([column, *banks]):
        nl.store(out[:, n : n + 1], nl.copy(each[:, 0:1]))
    return out


inputs = (np.ones((2, 128, 128), np.float32), np.ones((2, 128, 512), np.float32))
