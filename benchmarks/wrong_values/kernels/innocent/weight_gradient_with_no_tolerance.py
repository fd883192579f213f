"""The gradient of a norm's weight: a sum over all rows."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(gradient, x):
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((1, columns), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        part = nl.ds(start, height)
        value, dy = nl.load(x[part, :]), nl.load(gradient[part, :])
        squares = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=squares, data1=value, data2=value, op=nl.multiply)
        mean = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mean, op=nl.add, data=squares, axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / columns, op1=nl.add, operand1=1e-6)
        norm = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=norm, data=value, op0=nl.multiply, operand0=nl.rsqrt(mean))
        nisa.tensor_tensor(dst=norm, data1=norm, data2=dy, op=nl.multiply)
        ones = nl.ones((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        sums = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=ones, moving=norm)
        nisa.tensor_tensor(dst=total, data1=total, data2=sums, op=nl.add)
    nisa.dma_copy(dst=out, src=nl.copy(total, dtype=nl.float32))
    return out


def reference(gradient, x):
    inverse = 1 / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6)
    return (gradient * x * inverse).sum(axis=0, keepdims=True)


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return tuple((rng.random((rows, columns)) + 0.5).astype(np.float32) for _ in range(2))


space = {"rows": [512, 384], "columns": [64, 80]}
tolerance = (1e-9, 0.0)
