import nki
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.load(x[i * 128 : (i + 1) * 128, :])  # NK402
        nl.store(out[i * 128 : (i + 1) * 128, :], tile)
    return out


inputs = (np.ones((200, 64), np.float32),)
