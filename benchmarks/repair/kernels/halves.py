"""The two halves of the rows, added."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    half = x.shape[0] // 2
    out = nl.ndarray((half, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    lower = nl.ndarray((half, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=lower, src=tile[half : 2 * half, :])
    total = nl.ndarray((half, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=tile[0:half, :], data2=lower, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def reference(x):
    return x[:32] + x[32:]


inputs = (np.random.default_rng(23).random((64, 80), np.float32),)
tolerance = (1e-6, 1e-6)
