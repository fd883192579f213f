import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

import nkitools


@nki.jit
def row_sums(x):
    out = nl.ndarray((x.shape[0], 1), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.zeros((x.shape[0], 1), dtype=nl.bfloat16, buffer=nl.sbuf)
    for column in range(x.shape[1]):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, column : column + 1], op=nl.add)
    nl.store(out, total)
    return out


x = np.random.default_rng(0).random((128, 512), dtype=np.float32)
print(nkitools.precision_split(row_sums, x, reference=lambda x: x.sum(axis=1, keepdims=True)))
