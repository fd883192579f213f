"""Matrix multiplication with the tiles and blocks of NKI 0.7: operands are loaded once for each block of the result."""

import nki
import nki.isa as nisa
import nki.language as nl

BLOCK = (2, 2)  # tiles of the result whose operands are in SBUF at one time


@nki.jit
def blocked_matmul(lhs_transposed, rhs):
    """``lhs_transposed.T @ rhs`` of [K, M] and [K, N] as float32 [M, N], block by block; K up to 4096."""
    rows, columns = lhs_transposed.shape[1], rhs.shape[1]
    pmax, wide = nl.tile_size.pmax, nl.tile_size.psum_bank_fmax
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.tiles(lhs_transposed, tile_shape=(pmax, nl.tile_size.gemm_stationary_fmax))
    right = nl.tiles(rhs, tile_shape=(pmax, wide))
    blocks = nl.blocks(result, tile_shape=(pmax, wide), block_shape=BLOCK)

    for i in range(blocks.shape[0]):
        for j in range(blocks.shape[1]):
            tiles = nl.tiles(blocks[i, j])
            height, width = tiles.shape
            stationary = _loaded(left[:, i * BLOCK[0] : i * BLOCK[0] + height])
            moving = _loaded(right[:, j * BLOCK[1] : j * BLOCK[1] + width])
            for m in range(height):
                for n in range(width):
                    target = tiles[m, n].data
                    total = nl.ndarray(target.shape, dtype=nl.float32, buffer=nl.psum)
                    for k in range(left.shape[0]):
                        nisa.nc_matmul(dst=total, stationary=stationary[k, m].data, moving=moving[k, n].data)
                    evicted = nl.copy(total)
                    nl.device_print("tile", evicted)
                    nisa.dma_copy(dst=target, src=evicted)
    return result


def _loaded(grid):
    """The tiles of a grid in SBUF, loaded a row of tiles at a time."""
    held = nl.empty_like(grid, buffer=nl.sbuf)
    for k in range(grid.shape[0]):
        nisa.dma_copy(dst=held[k].data, src=grid[k].data)
    return held
