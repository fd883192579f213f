import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, gate):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    open_gate = nl.load(gate)
    gated = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=gated, data=tile, op0=nl.multiply, operand0=open_gate)
    nl.store(out, gated)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 1), np.float32))
