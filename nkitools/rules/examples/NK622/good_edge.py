import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)

    def add(i):
        columns = []
        for half in range(2):
            columns.append(nl.ds(32 * half, 32))
        for each in columns:
            nisa.tensor_tensor(dst=total[:, each], data1=total[:, each], data2=nl.load(x[:, each]), op=nl.add)

    nl.fori_loop(0, 1, add)
    nl.store(out, total)
    return out


inputs = (np.ones((128, 64), np.float32),)
