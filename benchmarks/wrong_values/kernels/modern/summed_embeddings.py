"""For each token a weighted sum of rows of a table, which indices choose."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

ROWS = 50
WIDTH = 40


def _rows_of(table, index):
    """The rows of ``table`` that ``index`` [count, 1] names, one a partition."""
    count, width = index.shape[0], table.shape[1]
    tile = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
    chosen = table.ap(pattern=[[width, count], [1, width]], offset=0, vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=chosen)
    return tile


@nki.jit
def kernel(table, indices, weights):
    tokens, chosen = indices.shape
    width = table.shape[1]
    pmax = nl.tile_size.pmax
    out = nl.ndarray((tokens, width), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in range(0, tokens, pmax):
        height = min(pmax, tokens - start)
        part = nl.ds(start, height)
        factors = nl.load(weights[part, :])
        total = nl.zeros((height, width), dtype=nl.float32, buffer=nl.sbuf)
        for place in range(chosen):
            index = nl.load(indices[part, place : place + 1])
            rows = _rows_of(table, index)
            scaled = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=scaled, data=rows, op0=nl.multiply, operand0=factors[:, 0:1])
            nisa.tensor_tensor(dst=total, data1=total, data2=scaled, op=nl.add)
        nisa.dma_copy(dst=out[part, :], src=total)
    return out


def reference(table, indices, weights):
    return np.einsum("tcw,tc->tw", table[indices], weights)


def inputs(tokens, chosen, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    indices = rng.integers(0, ROWS, (tokens, chosen)).astype(np.int32)
    return table, indices, rng.random((tokens, chosen)).astype(np.float32)


space = {"tokens": [150, 100], "chosen": [3, 4]}
tolerance = (1e-3, 1e-4)
