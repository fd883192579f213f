"""The mean and the mean square of each group of columns; tiles have eight columns. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

TILE = 8


@nki.jit
def kernel(x, groups):
    rows, columns = x.shape
    members = columns // groups
    means = nl.ndarray((rows, groups), dtype=nl.float32, buffer=nl.shared_hbm)
    squares = nl.ndarray((rows, groups), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(rows)[:, None]
    i_f = nl.arange(TILE)[None, :]
    i_one = nl.arange(1)[None, :]
    for group in nl.affine_range(groups):
        tile = nl.zeros((nl.par_dim(rows), TILE), dtype=nl.float32, buffer=nl.sbuf)
        at = group * members + i_f
        inside = at < columns
        tile[i_p, i_f] = nl.load(x[i_p, at], mask=inside)
        mean = nl.sum(tile, axis=1, keepdims=True) / members
        square = nl.sum(nl.square(tile), axis=1, keepdims=True) / members
        nl.store(means[i_p, group + i_one], mean)
        nl.store(squares[i_p, group + i_one], square)
    return means, squares


def reference(x, groups):
    parts = x.reshape(len(x), groups, -1)
    return parts.mean(axis=2), (parts**2).mean(axis=2)


def inputs(rows, groups, members, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((rows, groups * members)).astype(np.float32), groups


space = {"rows": [64, 128], "groups": [3, 5], "members": [6, 7]}
tolerance = (1e-3, 1e-4)
