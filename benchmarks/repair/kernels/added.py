"""The sum of two arrays, by instructions."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        a_tile = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.sbuf)
        b_tile = nl.ndarray((128, 256), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a_tile, src=a[i * 128 : (i + 1) * 128, :])
        nisa.dma_copy(dst=b_tile, src=b[i * 128 : (i + 1) * 128, :])
        total = nl.ndarray((128, 256), dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=total, data1=a_tile, data2=b_tile, op=nl.add)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=total)
    return out


def reference(a, b):
    return a + b


_random = np.random.default_rng(1)
inputs = (_random.random((256, 256), np.float32), _random.random((256, 256), np.float32))
tolerance = (1e-5, 1e-6)
