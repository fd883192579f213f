import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHIP = "trn2"  # the first one whose Scalar Engine has tensor_scalar


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = []
    for t in range(5):
        tile = nl.ndarray((128, 1024), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(t * 1024, 1024)])
        tiles.append(tile)
    for _ in range(64):
        nisa.tensor_scalar(tiles[0], tiles[0], nl.multiply, 1.0, engine=nisa.engine.scalar)
        nisa.tensor_scalar(tiles[1], tiles[1], nl.multiply, 1.0, engine=nisa.engine.vector)
        nisa.tensor_scalar(tiles[2], tiles[2], nl.multiply, 1.0, engine=nisa.engine.scalar)
        nisa.tensor_scalar(tiles[3], tiles[3], nl.multiply, 1.0, engine=nisa.engine.vector)
        nisa.tensor_scalar(tiles[4], tiles[4], nl.multiply, 1.0, engine=nisa.engine.vector)
    for t in range(5):
        nisa.dma_copy(dst=out[:, nl.ds(t * 1024, 1024)], src=tiles[t])
    return out


inputs = (np.ones((128, 5120), np.float32),)
