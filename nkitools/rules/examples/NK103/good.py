import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        stationary = nl.load(lhs_t[nl.ds(k * 64, 64), :])
        moving = nl.load(rhs[nl.ds(k * 64, 64), :])
        nisa.nc_matmul(
            dst=product,
            stationary=stationary,
            moving=moving,
            accumulate=k > 0,
            tile_position=(0, 0),
            tile_size=(64, 64),
        )
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 512), np.float32))
