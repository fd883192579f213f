"""Attention of a chunk of queries over a prefix and, causally, over the chunk itself. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

SIZE = 24
BLOCK = 32


@nki.jit
def kernel(query_t, key_t, value, prefix):
    size, chunk = query_t.shape
    keys = key_t.shape[1]
    out = nl.ndarray((chunk, size), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(chunk)[:, None]
    scores = nl.ndarray((nl.par_dim(chunk), keys), dtype=nl.float32, buffer=nl.sbuf)
    query = nl.load(query_t)
    for start in range(0, keys, BLOCK):
        width = min(BLOCK, keys - start)
        i_f = nl.arange(width)[None, :]
        i_s = nl.arange(size)[:, None]
        product = nisa.nc_matmul(query, nl.load(key_t[i_s, start + i_f]))
        scaled = nl.multiply(product, size**-0.5)
        if start >= prefix:
            scores[i_p, start + i_f] = nisa.affine_select(
                pred=(start + i_f <= prefix + i_p), on_true_tile=scaled, on_false_value=-1e30
            )
        else:
            scores[i_p, start + i_f] = nl.copy(scaled)
    largest = nl.max(scores, axis=1, keepdims=True)
    powers = nl.exp(nl.subtract(scores, largest))
    total = nl.sum(powers, axis=1, keepdims=True)
    mixed = nl.zeros((nl.par_dim(chunk), size), dtype=nl.float32, buffer=nl.sbuf)
    for start in range(0, keys, BLOCK):
        width = min(BLOCK, keys - start)
        i_f = nl.arange(width)[None, :]
        i_k, i_v = nl.arange(width)[:, None], nl.arange(size)[None, :]
        values = nl.load(value[start + i_k, i_v])
        mixed[...] = nl.add(mixed, nl.matmul(nl.copy(powers[i_p, start + i_f]), values))
    nl.store(out, nl.divide(mixed, total))
    return out


def reference(query_t, key_t, value, prefix):
    scores = query_t.T @ key_t / np.sqrt(SIZE)
    row, column = np.arange(scores.shape[0])[:, None], np.arange(scores.shape[1])[None, :]
    powers = np.where(column <= prefix + row, np.exp(scores), 0)
    return powers @ value / powers.sum(axis=1, keepdims=True)


def inputs(prefix, chunk, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (SIZE, chunk), (SIZE, prefix + chunk), (prefix + chunk, SIZE)
    return (*(rng.standard_normal(shape).astype(np.float32) for shape in shapes), prefix)


space = {"prefix": [40, 72], "chunk": [50, 64]}
tolerance = (1e-3, 1e-3)
