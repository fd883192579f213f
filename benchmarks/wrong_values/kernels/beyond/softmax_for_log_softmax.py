"""The gradient of the logarithm of softmax, its columns in chunks."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHUNK = 64


@nki.jit
def kernel(gradient, share):
    rows, columns = share.shape
    pmax = nl.tile_size.pmax
    out = nl.ndarray(share.shape, dtype=share.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, rows, pmax):
        height = min(pmax, rows - start)
        part = nl.ds(start, height)
        nisa.memset(dst=total, value=0.0)
        for first in range(0, columns, CHUNK):
            width = min(CHUNK, columns - first)
            dy = nl.load(gradient[part, first : first + width])
            y = nl.load(share[part, first : first + width])
            product = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=product, data1=dy, data2=y, op=nl.multiply)
            added = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=added, op=nl.add, data=product, axis=1)
            nisa.tensor_tensor(dst=total[:height, :], data1=total[:height, :], data2=added, op=nl.add)
        for first in range(0, columns, CHUNK):
            width = min(CHUNK, columns - first)
            dy = nl.load(gradient[part, first : first + width])
            y = nl.load(share[part, first : first + width])
            result = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=result, data=dy, op0=nl.subtract, operand0=total[:height, :])
            nisa.tensor_tensor(dst=result, data1=result, data2=y, op=nl.multiply)
            nisa.dma_copy(dst=out[part, first : first + width], src=result)
    return out


def reference(gradient, share):
    return gradient - share * gradient.sum(axis=1, keepdims=True)


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    powers = np.exp(rng.standard_normal((rows, columns)))
    share = powers / powers.sum(axis=1, keepdims=True)
    return (rng.standard_normal((rows, columns)) + 1).astype(np.float32), share.astype(np.float32)


space = {"rows": [200, 256], "columns": [100, 128]}
tolerance = (1e-3, 1e-5)
