import nki
import nki.language as nl
import numpy as np


def doubled(x, scratch):
    nl.store(scratch, nl.multiply(nl.load(x), 2.0))


@nki.jit
def kernel(x):
    scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    doubled(x, scratch)
    nl.store(out, nl.multiply(nl.load(x), 3.0))
    return out


inputs = (np.ones((128, 64), np.float32),)
