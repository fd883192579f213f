"""Rows of a table that an index names, twice as large."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(table, index):
    count, width = index.shape[0], table.shape[1]
    out = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.shared_hbm)
    places = nl.load(index)
    rows = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
    chosen = table.ap(pattern=[[width, count], [1, width]], vector_offset=places, indirect_dim=0)
    nisa.dma_copy(dst=rows, src=chosen)
    doubled = nl.ndarray((count, width), dtype=table.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=rows, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=doubled)
    return out


def reference(table, index):
    return 2 * table[index[:, 0]]


_random = np.random.default_rng(22)
inputs = (_random.random((50, 64), np.float32), _random.permutation(50)[:40].reshape(40, 1).astype(np.int32))
tolerance = (1e-6, 1e-6)
