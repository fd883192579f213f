import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
    stationary = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    moving = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=stationary, src=lhs_t)
    nisa.dma_copy(dst=moving, src=rhs)
    nisa.nc_matmul(  # NK103
        dst=product, stationary=stationary, moving=moving, tile_position=(0, 0), tile_size=(64, 64)
    )
    result = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 512), np.float32))
