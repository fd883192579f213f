import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)
    tile = nl.load(x)
    factor = 1.0

    def add(i):
        nonlocal factor
        nisa.scalar_tensor_tensor(dst=total, data=tile, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=total)
        factor = 2.0 * factor  # NK622

    nl.fori_loop(0, 4, add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
