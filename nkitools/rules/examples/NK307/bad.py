import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    copied = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.activation(dst=copied, op=nl.copy, data=tile)  # NK307
    nl.store(out, copied)
    return out


inputs = (np.arange(1 << 24, (1 << 24) + 128 * 8, dtype=np.int32).reshape(128, 8),)
