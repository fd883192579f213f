import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=product, value=1.0)
    stationary, moving = nl.load(lhs_t), nl.load(rhs)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving, accumulate=True)  # NK503
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
