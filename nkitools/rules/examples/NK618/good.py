import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=x.dtype)

    def add(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=nl.load(x), op=nl.add)

    nl.fori_loop(0, 4, add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
