"""The gradients of a norm of a sum with respect to its input and to its gate. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(gradient, x, gate):
    rows, columns = x.shape
    to_x = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    to_gate = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(columns)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        inside = i * 128 + i_p < rows
        dy = nl.load(gradient[i * 128 + i_p, i_f], mask=inside)
        value = nl.load(x[i * 128 + i_p, i_f], mask=inside)
        factor = nl.load(gate[i * 128 + i_p, i_f], mask=inside)
        mean = nl.sum(nl.square(value, mask=inside), axis=1, keepdims=True, mask=inside) / columns
        inverse = nl.rsqrt(mean + 1e-5, mask=inside)
        norm = nl.multiply(value, inverse, mask=inside)
        dz = nl.multiply(dy, norm, mask=inside)
        weighted = nl.multiply(dy, factor, mask=inside)
        product = nl.multiply(weighted, norm, mask=inside)
        share = nl.sum(product, axis=1, keepdims=True, mask=inside) / columns
        less = nl.multiply(norm, share, mask=inside)
        dx = nl.multiply(nl.subtract(weighted, less, mask=inside), inverse, mask=inside)
        nl.store(to_x[i * 128 + i_p, i_f], dz, mask=inside)
        nl.store(to_gate[i * 128 + i_p, i_f], dz, mask=inside)
    return to_x, to_gate


def reference(gradient, x, gate):
    inverse = 1 / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)
    norm, weighted = x * inverse, gradient * gate
    return (weighted - norm * (weighted * norm).mean(axis=1, keepdims=True)) * inverse, gradient * norm


def inputs(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal((3, rows, columns)).astype(np.float32))


space = {"rows": [140, 100], "columns": [48, 80]}
tolerance = (1e-3, 1e-4)
