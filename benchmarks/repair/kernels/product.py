"""A matrix product, summed over tiles of K."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(4):
        stationary = nl.load(lhs_t[nl.ds(k * 128, 128), :])
        moving = nl.load(rhs[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=k > 0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


def reference(lhs_t, rhs):
    return lhs_t.T @ rhs


_random = np.random.default_rng(2)
inputs = (_random.random((512, 128), np.float32), _random.random((512, 512), np.float32))
tolerance = (1e-4, 1e-4)
