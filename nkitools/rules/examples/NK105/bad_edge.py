import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(lhs_t, rhs):
    out = nl.ndarray((128, rhs.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = nl.load(lhs_t)
    moving = nl.load(rhs)
    product = nisa.nc_matmul(stationary, moving)  # NK105
    nl.store(out, nl.copy(product))
    return out


CHIP = "trn2"
inputs = (np.ones((128, 128), np.float32), np.ones((128, 513), np.float32))
