"""The running sum of each row, tile by tile."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

TILE = 64


@nki.jit
def kernel(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    carried = nl.zeros((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, columns, TILE):
        width = min(TILE, columns - start)
        part = nl.ds(start, width)
        tile = nl.load(x[:, part])
        ones = nl.ones((rows, width), dtype=nl.float32, buffer=nl.sbuf)
        sums = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor_scan(dst=sums, data0=ones, data1=tile, initial=0.0, op0=nl.multiply, op1=nl.add)
        whole = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=whole, data=sums, op0=nl.add, operand0=carried)
        nisa.tensor_copy(dst=carried, src=whole[:, 0:1])
        nisa.dma_copy(dst=out[:, part], src=whole)
    return out


def reference(x):
    return np.cumsum(x, axis=1)


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((rows, columns)).astype(np.float32),)


space = {"rows": [100, 128], "columns": [200, 128]}
tolerance = (1e-3, 1e-3)
