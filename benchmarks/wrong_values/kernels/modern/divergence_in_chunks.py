"""The divergence of two distributions per token, in chunks of tokens; ignored tokens have none."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHUNK = 128
CLASSES = 36


@nki.jit
def kernel(student, teacher, counted):
    rows, classes = student.shape
    out = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in range(0, rows, CHUNK):
        part = nl.ds(start, CHUNK)
        ours, theirs = nl.load(student[part, :]), nl.load(teacher[part, :])
        counts = nl.load(counted[0:CHUNK, :])
        apart = nl.subtract(theirs, ours)
        weights = nl.exp(theirs)
        product = nl.multiply(weights, apart)
        total = nl.ndarray((CHUNK, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=product, axis=1)
        nisa.tensor_tensor(dst=total, data1=total, data2=counts, op=nl.multiply)
        nisa.dma_copy(dst=out[part, :], src=total)
    return out


def reference(student, teacher, counted):
    return (np.exp(teacher) * (teacher - student)).sum(axis=1, keepdims=True) * counted


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((2, rows, CLASSES))
    shares = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    counted = rng.random((rows, 1)) < 0.7
    return shares[0].astype(np.float32), shares[1].astype(np.float32), counted.astype(np.float32)


space = {"rows": [256, 512]}
tolerance = (1e-3, 1e-4)
