import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHIP = "trn1"


@nki.jit
def kernel(x, b):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, bias = nl.load(x), nl.load(b)
    nisa.activation(dst=tile, op=nl.copy, data=tile, bias=bias)  # NK623
    nl.store(out, tile)
    return out


inputs = (np.ones((128, 64), np.float32), np.ones((128, 1), np.float32))
