"""Tiled matrix multiplication, in the modern NKI dialect."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(lhs_transposed, rhs):
    """``lhs_transposed.T @ rhs`` of [K, M] and [K, N] as float32 [M, N]; any sizes."""
    contraction, rows = lhs_transposed.shape
    columns = rhs.shape[1]
    assert rhs.shape[0] == contraction, "both operands must have one contraction size"
    tile_k, tile_m, tile_n = nl.tile_size.pmax, nl.tile_size.gemm_stationary_fmax, nl.tile_size.psum_bank_fmax
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)

    starts_k = range(0, contraction, tile_k)
    for n in range(0, columns, tile_n):
        width = min(tile_n, columns - n)
        moving = [nl.load(rhs[k : k + min(tile_k, contraction - k), n : n + width]) for k in starts_k]
        for m in range(0, rows, tile_m):
            height = min(tile_m, rows - m)
            total = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
            for k, tile in zip(starts_k, moving):
                stationary = nl.load(lhs_transposed[k : k + min(tile_k, contraction - k), m : m + height])
                nisa.nc_matmul(dst=total, stationary=stationary, moving=tile)
            evicted = nl.copy(total)
            nisa.dma_copy(dst=result[m : m + height, n : n + width], src=evicted)
    return result
