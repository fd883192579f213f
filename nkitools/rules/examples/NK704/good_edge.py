import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    left, right = nl.load(a, dtype=nl.bfloat16), nl.load(b, dtype=nl.bfloat16)
    for k in range(256):
        nisa.nc_matmul(dst=result, stationary=left, moving=right, accumulate=k > 0)
    nisa.dma_copy(dst=out, src=nl.copy(result))
    return out


inputs = (np.ones((65, 128), np.float32), np.ones((65, 128), np.float32))
