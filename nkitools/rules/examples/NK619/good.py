import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, scale=None):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = 1.0 if scale is None else scale  # nki: ignore[NK616] compiled with NKI 0.6
    nl.store(out, nl.multiply(nl.load(x), scale))
    return out


inputs = (np.ones((128, 64), np.float32),)
