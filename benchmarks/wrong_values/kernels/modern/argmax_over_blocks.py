"""The largest element of each row and its column, found block by block."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

BLOCK = 32


@nki.jit
def kernel(x):
    rows, columns = x.shape
    values = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    indices = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    best = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    where = nl.zeros((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=best, value=-1e30)
    for start in range(0, columns, BLOCK):
        tile = nl.load(x[:, start : start + BLOCK])
        eight = nl.ndarray((rows, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.max8(dst=eight, src=tile)
        found = nl.ndarray((rows, 8), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.nc_find_index8(dst=found, data=tile, vals=eight)
        column = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=column, data=found[:, 0:1], op0=nl.add, operand0=float(start))
        better = nl.ndarray((rows, 1), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=better, data1=eight[:, 0:1], data2=best, op=nl.greater)
        nisa.tensor_copy_predicated(dst=best, src=eight[:, 0:1], predicate=better)
        nisa.tensor_copy(dst=where, src=column)
    nisa.dma_copy(dst=values, src=best)
    nisa.dma_copy(dst=indices, src=where)
    return values, indices


def reference(x):
    return x.max(axis=1, keepdims=True), x.argmax(axis=1)[:, None].astype(np.float32)


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)).astype(np.float32),)


space = {"rows": [100, 40], "columns": [128, 64]}
tolerance = (1e-4, 1e-5)
