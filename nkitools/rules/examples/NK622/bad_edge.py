import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)
    turns = []

    def add(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=nl.load(x), op=nl.add)
        turns.append("a turn")  # NK622

    nl.fori_loop(0, 1, add)
    nl.store(out, nl.multiply(total, len(turns)))
    return out


inputs = (np.ones((128, 64), np.float32),)
