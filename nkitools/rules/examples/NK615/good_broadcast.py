import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, w):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    shifted = nl.load(x)
    nisa.tensor_scalar(dst=shifted, data=shifted, op0=nl.add, operand0=nl.load(w))
    nl.store(out, shifted)
    return out


inputs = (np.full((128, 64), 4.0, np.float32), np.ones((128, 1), np.float32))
