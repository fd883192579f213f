"""A row of weights times each row."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, weight):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    weights = nl.load(weight.broadcast(0, 128))
    result = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=result, data1=tile, data2=weights, op=nl.multiply)
    nl.store(out, result)
    return out


def reference(x, weight):
    return x * weight


_random = np.random.default_rng(4)
inputs = (_random.random((128, 96), np.float32), _random.random((1, 96), np.float32))
tolerance = (1e-5, 1e-6)
