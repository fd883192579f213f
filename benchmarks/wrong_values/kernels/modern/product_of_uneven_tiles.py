"""A matrix product whose tiles of rows are longer than those of the contraction."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE_M = 128
TILE_K = 64


@nki.jit
def kernel(left_t, right):
    depth, m = left_t.shape
    n = right.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    moving = []
    for k in range(depth // TILE_K):
        moving.append(nl.load(right[nl.ds(k * TILE_K, TILE_K), :]))
    for block in range(m // TILE_M):
        product = nl.ndarray((TILE_M, n), dtype=nl.float32, buffer=nl.psum)
        for k in range(depth // TILE_K):
            stationary = nl.ndarray((TILE_K, TILE_M), dtype=left_t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=stationary, src=left_t[nl.ds(k * TILE_K, TILE_K), nl.ds(block * TILE_K, TILE_M)])
            nisa.nc_matmul(dst=product, stationary=stationary, moving=moving[k], accumulate=k > 0)
        result = nl.copy(product)
        nisa.dma_copy(dst=out[nl.ds(block * TILE_M, TILE_M), :], src=result)
    return out


def reference(left_t, right):
    return left_t.T @ right


def inputs(m, n, depth, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((depth, m), (depth, n)))


space = {"m": [256, 384], "n": [96, 48], "depth": [128, 256]}
tolerance = (1e-3, 1e-3)
