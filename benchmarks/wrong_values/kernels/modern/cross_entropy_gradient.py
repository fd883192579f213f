"""The gradient of token losses with respect to the logits, each row by its own incoming gradient."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(logits, hot, incoming):
    rows, columns = logits.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(logits.shape, dtype=logits.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        part = nl.ds(start, height)
        tile, label = nl.load(logits[part, :]), nl.load(hot[part, :])
        factor = nl.load(incoming[part, :])
        nisa.tensor_scalar(dst=factor, data=factor, op0=nl.multiply, operand0=1.0 / rows)
        lowest = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        powers = nl.ndarray((height, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=powers, op=nl.exp, data=tile, bias=lowest)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=powers, data=powers, op0=nl.multiply, operand0=total)
        change = nl.subtract(powers, label)
        nisa.tensor_scalar(dst=change, data=change, op0=nl.multiply, operand0=1.0 / rows)
        nisa.dma_copy(dst=out[part, :], src=change)
    return out


def reference(logits, hot, incoming):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True) - hot) * incoming / len(logits)


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((rows, columns)).astype(np.float32)
    hot = np.eye(columns, dtype=np.float32)[rng.integers(0, columns, rows)]
    return logits, hot, rng.random((rows, 1)).astype(np.float32) + 0.5


space = {"rows": [160, 90], "columns": [50, 64]}
tolerance = (1e-3, 1e-6)
