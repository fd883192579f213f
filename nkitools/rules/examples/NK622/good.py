import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)
    scaled = nl.load(x)

    def add(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=scaled, op=nl.add)
        nisa.tensor_scalar(dst=scaled, data=scaled, op0=nl.multiply, operand0=2.0)

    nl.fori_loop(0, 4, add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
