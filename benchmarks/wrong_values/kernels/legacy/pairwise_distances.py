"""The squared distances of two sets of points, from norms and a product. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(first_t, second_t):
    size, left = first_t.shape
    right = second_t.shape[1]
    out = nl.ndarray((left, right), dtype=nl.float32, buffer=nl.shared_hbm)
    i_k = nl.arange(128)[:, None]
    i_left, i_right = nl.arange(left)[None, :], nl.arange(right)[None, :]
    inner = nl.zeros((nl.par_dim(left), right), dtype=nl.float32, buffer=nl.psum)
    own = nl.zeros((nl.par_dim(left), 1), dtype=nl.float32, buffer=nl.psum)
    other = nl.zeros((nl.par_dim(left), right), dtype=nl.float32, buffer=nl.psum)
    one = nl.ones((nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
    ones = nl.ones((nl.par_dim(128), left), dtype=nl.float32, buffer=nl.sbuf)
    for k in nl.affine_range(size // 128):
        first = nl.load(first_t[k * 128 + i_k, i_left])
        second = nl.load(second_t[k * 128 + i_k, i_right])
        inner += nisa.nc_matmul(first, second)
        own += nisa.nc_matmul(nl.square(first), one)
        other += nisa.nc_matmul(ones, nl.square(second))
    cross = nl.multiply(inner, -1.0)
    both = nl.add(nl.copy(other), nl.copy(own))
    distance = nl.maximum(nl.add(both, cross), 0.0)
    nl.store(out, distance)
    return out


def reference(first_t, second_t):
    apart = first_t.T[:, None, :] - second_t.T[None, :, :]
    return (apart**2).sum(axis=2)


def inputs(left, right, size, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((size, each)).astype(np.float32) for each in (left, right))


space = {"left": [64, 100], "right": [80, 50], "size": [256, 128]}
tolerance = (1e-3, 1e-2)
