import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled = nl.ndarray(x.shape, dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
    tile = nl.load(x)  # NK614
    doubled[...] = nl.multiply(tile, 2.0)
    nl.store(out, doubled)
    return out


inputs = (np.ones((128, 64), np.float32),)
