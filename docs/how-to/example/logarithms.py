import nki
import nki.language as nl
import numpy as np

import nkitools


@nki.jit
def logarithms(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    shifted = nl.subtract(tile, 1.0)
    nl.store(out, nl.log(shifted))
    return out


x = np.full((128, 64), 2.0, np.float32)
x[3, 17] = 0.5
run = nkitools.simulate(logarithms, x, rules="report")
print(run.why(0, (3, 17)))
