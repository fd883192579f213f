import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, w):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    shifted = nl.add(nl.load(x), nl.load(w))  # NK615
    nl.store(out, shifted)
    return out


inputs = (np.full((128, 64), 4.0, np.float32), np.ones((128, 1), np.float32))
