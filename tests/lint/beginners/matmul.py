"""The product of two matrices, as a beginner writes it."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(left_t, right):
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.hbm)  # NK621
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    stationary = nl.ndarray((128, 128), dtype=left_t.dtype, buffer=nl.sbuf)
    moving = nl.ndarray((128, 512), dtype=right.dtype, buffer=nl.sbuf)
    for k in nl.affine_range(2):
        nisa.dma_copy(dst=stationary, src=left_t[k * 128 : (k + 1) * 128, :])
        nisa.dma_copy(dst=moving, src=right[k * 128 : (k + 1) * 128, :])
        if len(moving) > 0:  # NK601
            nisa.nc_matmul(total, stationary, moving)  # NK201
    if total > 0:  # NK602
        nisa.dma_copy(dst=product, src=total)
    return product
