"""One step of Adam, with weight decay taken from the weights."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

RATE = 0.01
BETA1 = 0.9
BETA2 = 0.999
DECAY = 0.1


def _moved(old, new, beta):
    """``beta * old + (1 - beta) * new``."""
    kept = nl.ndarray(old.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=kept, data=old, op0=nl.multiply, operand0=beta)
    added = nl.ndarray(old.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=added, data=new, op0=nl.multiply, operand0=1.0 - beta)
    return nl.add(kept, added)


@nki.jit
def kernel(weight, gradient, first, second, step):
    rows, columns = weight.shape
    outs = [nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(3)]
    value, change = nl.load(weight), nl.load(gradient)
    mean = _moved(nl.load(first), change, BETA1)
    square = _moved(nl.load(second), nl.square(change), BETA2)
    corrected_mean = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=corrected_mean, data=mean, op0=nl.multiply, operand0=1.0 / (1.0 - BETA2**step))
    corrected_square = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=corrected_square, data=square, op0=nl.multiply, operand0=1.0 / (1.0 - BETA2**step))
    root = nl.sqrt(corrected_square)
    nisa.tensor_scalar(dst=root, data=root, op0=nl.add, operand0=1e-8)
    nisa.reciprocal(dst=root, data=root)
    direction = nl.multiply(corrected_mean, root)
    nisa.tensor_scalar(dst=direction, data=direction, op0=nl.multiply, operand0=RATE)
    faded = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=faded, data=value, op0=nl.multiply, operand0=1.0 + RATE * DECAY)
    nisa.dma_copy(dst=outs[0], src=nl.subtract(faded, direction))
    nisa.dma_copy(dst=outs[1], src=mean)
    nisa.dma_copy(dst=outs[2], src=square)
    return tuple(outs)


def reference(weight, gradient, first, second, step):
    mean = 0.9 * first + 0.1 * gradient
    square = 0.999 * second + 0.001 * gradient**2
    root = np.sqrt(square / (1 - 0.999**step)) + 1e-8
    return weight * (1 - 0.001) - 0.01 * mean / (1 - 0.9**step) / root, mean, square


def inputs(rows, columns, step, seed=0):
    rng = np.random.default_rng(seed)
    weight, gradient, first = rng.standard_normal((3, rows, columns)).astype(np.float32)
    second = (rng.random((rows, columns)) * 0.01).astype(np.float32)
    return weight, gradient, first, second, step


space = {"rows": [100, 64], "columns": [80, 50], "step": [3, 7]}
tolerance = (1e-3, 1e-5)
