"""Running sums of tiles, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 32), dtype=nl.float32)
    for i in nl.sequential_range(5):
        total[...] = nl.add(total, nl.load(x[i]))
    nl.store(out, total)
    return out


def reference(x):
    return x.sum(axis=0)


inputs = (np.random.default_rng(10).random((5, 128, 32), np.float32),)
tolerance = (1e-5, 1e-5)
