"""The clipped loss of a policy: the mean over all tokens that count, and each row's own sum."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

LOW = 0.8
HIGH = 1.2


@nki.jit
def kernel(now, before, advantage, counted):
    rows, tokens = now.shape
    sums = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    loss = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    gain = nl.load(advantage)
    counts = nl.load(counted)
    ratio = nl.exp(nl.subtract(nl.load(now), nl.load(before)))
    near = nl.ndarray((rows, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=near, data=ratio, op0=nl.maximum, operand0=LOW, op1=nl.minimum, operand1=HIGH)
    first = nl.ndarray((rows, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=first, data=ratio, op0=nl.multiply, operand0=gain)
    second = nl.ndarray((rows, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=second, data=near, op0=nl.multiply, operand0=gain)
    least = nl.minimum(first, second)
    each = nl.ndarray((rows, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=each, data=least, op0=nl.multiply, operand0=-1.0)
    nisa.tensor_tensor(dst=each, data1=each, data2=counts, op=nl.multiply)
    both = nl.ndarray((rows, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=both[:, 0:1], op=nl.add, data=each, axis=1)
    nisa.tensor_reduce(dst=both[:, 1:2], op=nl.add, data=counts, axis=1)
    nisa.dma_copy(dst=sums, src=both[:, 0:1])
    ones = nl.ones((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((1, 2), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=ones, moving=both)
    inverse = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total[:, 1:2])
    result = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=result, data=total[:, 0:1], op0=nl.multiply, operand0=inverse, op1=nl.multiply, operand1=-1.0
    )
    nisa.dma_copy(dst=loss, src=result)
    return loss, sums


def reference(now, before, advantage, counted):
    ratio = np.exp(now - before)
    each = -np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage) * counted
    return np.full((1, 1), each.sum() / counted.sum()), each.sum(axis=1, keepdims=True)


def inputs(rows, tokens, seed=0):
    rng = np.random.default_rng(seed)
    before = -rng.random((rows, tokens))
    now = before + rng.standard_normal((rows, tokens)) * 0.3
    advantage, counted = rng.standard_normal((rows, 1)) + 0.5, rng.random((rows, tokens)) < 0.8
    return tuple(each.astype(np.float32) for each in (now, before, advantage, counted))


space = {"rows": [64, 96], "tokens": [50, 40]}
tolerance = (1e-3, 1e-3)
