import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def scaled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)
    nl.store(out, doubled)
    return out


kernel = scaled
inputs = (np.ones((128, 64), np.float32),)
