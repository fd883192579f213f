import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, s):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) * nl.load(s))  # NK623
    return out


inputs = (np.ones((4, 3, 64), np.float32), np.ones((4, 3, 1), np.float32))
