"""The sum over blocks of columns."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=nl.float32)
    width = x.shape[1] // 64
    for j in range(width):
        block = nl.load(x[:, j * 64 : (j + 1) * 64])
        nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)
    nl.store(out, total)
    return out


def reference(x):
    return x.reshape(128, 4, 64).sum(axis=1)


inputs = (np.random.default_rng(5).random((128, 256), np.float32),)
tolerance = (1e-5, 1e-5)
