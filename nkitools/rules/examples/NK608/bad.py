import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]  # NK608
    i_f = nl.arange(64)[None, :]
    nl.store(out[i_p, i_f], nl.load(x[i_p, i_f]))
    return out


inputs = (np.ones((128, 64), np.float32),)
