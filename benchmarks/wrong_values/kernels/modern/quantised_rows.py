"""Rows quantised to whole numbers from -127 to 127, each by its own scale, and what they stand for."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    scales = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sizes = nl.abs(tile)
    largest = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
    nisa.tensor_scalar(dst=largest, data=largest, op0=nl.maximum, operand0=1e-6)
    scale = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scale, data=largest, op0=nl.multiply, operand0=1.0 / 127)
    inverse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=scale)
    scaled = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=tile, op0=nl.multiply, operand0=inverse, op1=nl.minimum, operand1=127.0)
    nisa.tensor_scalar(dst=scaled, data=scaled, op0=nl.maximum, operand0=-127.0)
    whole = nl.ndarray((rows, columns), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=whole, src=scaled)
    result = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=whole, op0=nl.multiply, operand0=scale)
    nisa.dma_copy(dst=out, src=result)
    nisa.dma_copy(dst=scales, src=scale)
    return out, scales


def reference(x):
    scale = np.abs(x).max(axis=1, keepdims=True) / 127
    return np.rint(x / scale) * scale, scale


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)).astype(np.float32),)


space = {"rows": [100, 128], "columns": [60, 80]}
tolerance = (1e-3, 1e-4)
