import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(angles):
    out = nl.ndarray(angles.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(angles)
    sines = nl.sin(tile)
    nisa.dma_copy(dst=out, src=sines)
    return out


inputs = (np.linspace(-9, 9, 128 * 64, dtype=np.float32).reshape(128, 64),)
