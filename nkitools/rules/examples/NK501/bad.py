import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=x.dtype)
    for i in nl.affine_range(4):
        total[...] = total + nl.load(x[i])  # NK501
    nl.store(out, total)
    return out


inputs = (np.ones((4, 128, 64), np.float32),)
