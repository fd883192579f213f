"""The mean loss of the tokens whose label counts."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

IGNORED = -100.0


def _total(column):
    """The sum over partitions of [rows, 1], as [1, 1]."""
    ones = nl.ones(column.shape, dtype=nl.float32, buffer=nl.sbuf)
    product = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=ones, moving=column)
    return nl.copy(product)


@nki.jit
def kernel(losses, labels):
    rows = losses.shape[0]
    pmax = nl.tile_size.pmax
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    counted = nl.zeros((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        part = nl.ds(start, height)
        loss, label = nl.load(losses[part, :]), nl.load(labels[part, :])
        counts = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=counts, data=label, op0=nl.not_equal, operand0=IGNORED)
        kept = nl.multiply(loss, counts)
        nisa.tensor_tensor(dst=total, data1=total, data2=_total(kept), op=nl.add)
        ones = nl.ones((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=counted, data1=counted, data2=_total(ones), op=nl.add)
    nisa.tensor_scalar(dst=counted, data=counted, op0=nl.maximum, operand0=1.0)
    nisa.reciprocal(dst=counted, data=counted)
    nisa.tensor_tensor(dst=total, data1=total, data2=counted, op=nl.multiply)
    nisa.dma_copy(dst=out, src=total)
    return out


def reference(losses, labels):
    counts = labels != IGNORED
    return np.full((1, 1), losses[counts].sum() / max(counts.sum(), 1), np.float32)


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((rows, 1)) < 0.3, IGNORED, rng.integers(0, 50, (rows, 1)))
    return rng.random((rows, 1)).astype(np.float32) + 1, labels.astype(np.float32)


space = {"rows": [180, 100]}
tolerance = (1e-3, 1e-4)
