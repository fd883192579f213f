"""A product of whole numbers, scaled back and with a bias of real numbers, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(left_t, right, scale, bias):
    depth, rows = left_t.shape
    columns = right.shape[1]
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((nl.par_dim(rows), columns), dtype=nl.float32, buffer=nl.psum)
    k_p = nl.arange(128)[:, None]
    i_row = nl.arange(rows)[None, :]
    i_column = nl.arange(columns)[None, :]
    for k in nl.affine_range(depth // 128):
        stationary = nl.load(left_t[k * 128 + k_p, i_row], dtype=nl.bfloat16)
        moving = nl.load(right[k * 128 + k_p, i_column], dtype=nl.bfloat16)
        total += nisa.nc_matmul(stationary, moving)
    whole = nl.copy(total, dtype=nl.float32)
    scales = nl.load(scale.reshape((1, columns))).broadcast_to((rows, columns))
    biases = nl.load(bias.reshape((1, columns))).broadcast_to((rows, columns))
    result = nl.multiply(nl.add(whole, biases), scales)
    nl.store(out, result)
    return out


def reference(left_t, right, scale, bias):
    return (left_t.T.astype(np.int64) @ right.astype(np.int64)) * scale + bias


def inputs(rows, depth, columns, seed=0):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(-20, 21, (depth, rows)), rng.integers(-20, 21, (depth, columns))
    scale, bias = rng.random(columns) * 0.01 + 0.001, rng.standard_normal(columns)
    return tuple(each.astype(np.float32) for each in (left, right, scale, bias))


space = {"rows": [64, 100], "depth": [256, 128], "columns": [48, 96]}
tolerance = (1e-3, 1e-3)
