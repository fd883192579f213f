import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sines = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=sines, op=nl.sin, data=tile)
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-3.14, 3.14, 128 * 64, dtype=np.float32).reshape(128, 64),)
