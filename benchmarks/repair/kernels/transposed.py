"""A transposed block, through PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    turned = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=tile)
    result = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=turned)
    nisa.dma_copy(dst=out, src=result)
    return out


def reference(x):
    return x.T


inputs = (np.random.default_rng(6).random((128, 64), np.float32),)
tolerance = (1e-6, 1e-7)
