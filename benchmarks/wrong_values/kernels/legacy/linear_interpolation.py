"""Rows read at positions between their columns; each element has a position from its own column on. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, positions):
    rows, columns = x.shape
    out = nl.ndarray((rows, columns - 1), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(rows)[:, None]
    i_f = nl.arange(columns - 1)[None, :]
    tile = nl.load(x)
    place = nl.load(positions)
    below = nl.floor(place)
    share = nl.subtract(place, below, dtype=nl.int32)
    rest = nl.subtract(1.0, share)
    left = tile[i_p, i_f]
    right = tile[i_p, i_f + 1]
    near = nl.multiply(left, rest, dtype=nl.float32)
    far = nl.multiply(right, share, dtype=nl.float32)
    nl.store(out, nl.add(near, far))
    return out


def reference(x, positions):
    share = positions - np.floor(positions)
    return x[:, :-1] * (1 - share) + x[:, 1:] * share


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    positions = np.arange(columns - 1)[None, :] + rng.random((rows, columns - 1)) * 0.98 + 0.01
    return rng.standard_normal((rows, columns)).astype(np.float32), positions.astype(np.float32)


space = {"rows": [100, 64], "columns": [60, 33]}
tolerance = (1e-3, 1e-3)
