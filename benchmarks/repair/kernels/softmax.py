"""The softmax of each row."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
    shifted = nl.ndarray((128, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.subtract, operand0=largest)
    powers = nl.ndarray((128, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=powers, op=nl.exp, data=shifted)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
    inverse = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)
    result = nl.ndarray((128, 200), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=inverse)
    nl.store(out, result)
    return out


def reference(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


inputs = (np.random.default_rng(3).random((128, 200), np.float32) * 9,)
tolerance = (1e-4, 1e-6)
