"""A matrix product of tiles of K, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.zeros((128, 256), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(3):
        stationary = nl.load(lhs_t[k * 128 : (k + 1) * 128, :])
        moving = nl.load(rhs[k * 128 : (k + 1) * 128, :])
        product += nisa.nc_matmul(stationary, moving)
    result = nl.copy(product)
    nl.store(out, result)
    return out


def reference(lhs_t, rhs):
    return lhs_t.T @ rhs


_random = np.random.default_rng(9)
inputs = (_random.random((384, 128), np.float32), _random.random((384, 256), np.float32))
tolerance = (1e-4, 1e-4)
