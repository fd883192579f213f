import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)

    def turn(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.0)

    nl.fori_loop(0, 20_001, turn)
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 1), np.float32),)
