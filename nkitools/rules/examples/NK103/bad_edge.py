import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    nisa.nc_matmul(  # NK103
        dst=product, stationary=stationary, moving=moving, tile_position=(0, 0), tile_size=(64, 64)
    )
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((65, 64), np.float32), np.ones((65, 512), np.float32))
