"""The first half of a gated MLP: silu of one product times another product. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x_t, gate_weight, up_weight):
    depth, rows = x_t.shape
    columns = gate_weight.shape[1]
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    gates = nl.zeros((nl.par_dim(rows), columns), dtype=nl.float32, buffer=nl.psum)
    ups = nl.zeros((nl.par_dim(rows), columns), dtype=nl.float32, buffer=nl.psum)
    k_p = nl.arange(128)[:, None]
    i_row = nl.arange(rows)[None, :]
    i_column = nl.arange(columns)[None, :]
    for k in nl.affine_range(depth // 128):
        stationary = nl.load(x_t[k * 128 + k_p, i_row])
        gates += nisa.nc_matmul(stationary, nl.load(gate_weight[k * 128 + k_p, i_column]))
        ups += nisa.nc_matmul(stationary, nl.load(up_weight[k * 128 + k_p, i_column]))
    gate = nl.copy(gates)
    up = nl.copy(ups)
    opened = nl.multiply(gate, nl.sigmoid(gate))
    result = nl.multiply(opened, up)
    nl.store(out, result)
    return out


def reference(x_t, gate_weight, up_weight):
    gate, up = x_t.T @ gate_weight, x_t.T @ up_weight
    return gate / (1 + np.exp(-gate)) * up


def inputs(rows, depth, columns, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((depth, rows)) / np.sqrt(depth)
    weights = rng.standard_normal((2, depth, columns))
    return tuple(each.astype(np.float32) for each in (x, weights[0], weights[1]))


space = {"rows": [100, 64], "depth": [256, 128], "columns": [96, 48]}
tolerance = (1e-10, 1e-10)
