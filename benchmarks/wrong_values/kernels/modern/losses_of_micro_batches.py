"""Cross-entropy of tokens, summed over micro-batches."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CLASSES = 40


@nki.jit
def kernel(logits, hot):
    batches, rows, classes = logits.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    losses = nl.zeros((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    for batch in range(batches):
        tile = nl.load(logits[batch, :, :])
        label = nl.load(hot[batch, :, :])
        lowest = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=tile, axis=1, negate=True)
        powers = nl.ndarray((rows, classes), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=powers, op=nl.exp, data=tile, bias=lowest)
        total = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
        chosen = nl.ndarray((rows, classes), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=chosen, data1=powers, data2=label, op=nl.multiply)
        share = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=share, op=nl.add, data=chosen, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_tensor(dst=share, data1=share, data2=total, op=nl.multiply)
        logarithm = nl.log(share)
        nisa.tensor_scalar(dst=losses, data=logarithm, op0=nl.multiply, operand0=-1.0)
    nisa.dma_copy(dst=out, src=losses)
    return out


def reference(logits, hot):
    largest = logits.max(axis=2, keepdims=True)
    log_sum = np.log(np.exp(logits - largest).sum(axis=2)) + largest[:, :, 0]
    return (log_sum - (logits * hot).sum(axis=2)).sum(axis=0)[:, None]


def inputs(batches, rows, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((batches, rows, CLASSES)).astype(np.float32)
    return logits, np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, (batches, rows))]


space = {"batches": [3, 4], "rows": [96, 128]}
tolerance = (1e-3, 1e-4)
