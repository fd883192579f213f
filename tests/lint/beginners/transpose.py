"""The transpose of a matrix, as a beginner writes it."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transpose(x):
    turned = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.hbm)  # NK621
    tile = nl.ndarray((256, 128), dtype=x.dtype, buffer=nl.sbuf)  # NK101
    nisa.dma_copy(dst=tile, src=x)
    halves = len(tile) // 128  # NK601
    for n in range(halves):
        half = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.psum)
        nisa.nc_transpose(half, tile[n * 128 : (n + 1) * 128, :])
        there = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(there, half)
        if half == 0:  # NK602
            continue
        nisa.dma_copy(dst=turned[:, n * 128 : (n + 1) * 128], src=there)
    return turned
