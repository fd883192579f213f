"""The sum of each column of a matrix, as a beginner writes it."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def column_sums(x):
    sums = nl.ndarray((1, 512), dtype=nl.float32, buffer=nl.private_hbm)  # NK621
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(ones, 1.0)
    tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.zeros((1, 512), dtype=nl.float32, buffer=nl.sbuf)
    for m in nl.affine_range(2):
        nisa.dma_copy(dst=tile, src=x[m * 128 : (m + 1) * 128, :])
        nisa.nc_matmul(total, ones, tile)  # NK201
    while total < 0:  # NK602
        nisa.tensor_scalar(total, total, nl.add, float(len(total)))  # NK601
    nisa.dma_copy(dst=sums, src=total)
    return sums
