import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 16384), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 16384), dtype=nl.bfloat16, buffer=nl.sbuf)
    partial = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for k in range(32):
        nisa.nc_matmul(dst=partial, stationary=left, moving=right, accumulate=False)
        nisa.tensor_copy(dst=total[:, nl.ds(k * 512, 512)], src=partial)  # NK707
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 128), nl.bfloat16), np.ones((128, 512), nl.bfloat16))
