"""The backward pass of a gated norm computes the forward output again, and the gradient of the gate."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, gate, gradient):
    rows, columns = x.shape
    pmax = nl.tile_size.pmax
    again = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    change = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        part = nl.ds(start, height)
        tile, opening, dy = nl.load(x[part, :]), nl.load(gate[part, :]), nl.load(gradient[part, :])
        mean = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=mean, op=nl.add, data=nl.square(tile), axis=1)
        nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / columns, op1=nl.add, operand1=1e-5)
        norm = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=norm, data=tile, op0=nl.multiply, operand0=nl.rsqrt(mean))
        sigma = nl.sigmoid(opening)
        output = nl.multiply(norm, nl.multiply(opening, sigma))
        slope = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=slope, data=sigma, op0=nl.multiply, operand0=-1.0, op1=nl.add, operand1=1.0)
        nisa.tensor_tensor(dst=slope, data1=slope, data2=opening, op=nl.multiply)
        nisa.tensor_scalar(dst=slope, data=slope, op0=nl.add, operand0=1.0)
        nisa.tensor_tensor(dst=slope, data1=slope, data2=sigma, op=nl.multiply)
        result = nl.multiply(nl.multiply(dy, norm), slope)
        nisa.dma_copy(dst=change[part, :], src=result)
        nisa.dma_copy(dst=again[part, :], src=output)
    return again, change


def reference(x, gate, gradient):
    norm = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)
    sigma = 1 / (1 + np.exp(-gate))
    return norm * gate * sigma, gradient * norm * sigma * (1 + gate * (1 - sigma))


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((rows, columns)).astype(np.float32) for _ in range(3))


space = {"rows": [150, 100], "columns": [64, 48]}
tolerance = (1e-9, 1e-10)
