"""Attention in which several heads of queries share a head of keys. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

HEADS = 6
SIZE = 32


@nki.jit
def kernel(query_t, key_t, value):
    heads, size, tokens = query_t.shape
    shared = key_t.shape[0]
    out = nl.ndarray((heads, tokens, size), dtype=nl.float32, buffer=nl.shared_hbm)
    for head in nl.static_range(heads):
        one = head // (heads // shared)
        query = nl.multiply(nl.load(query_t[head]), size**-1.0)
        scores = nisa.nc_matmul(query, nl.load(key_t[one]))
        largest = nl.max(scores, axis=1, keepdims=True)
        powers = nl.exp(nl.subtract(scores, largest))
        total = nl.sum(powers, axis=1, keepdims=True)
        turned = nl.copy(nisa.nc_transpose(powers))
        mixed = nisa.nc_matmul(turned, nl.load(value[0]))
        result = nl.divide(mixed, total)
        nl.store(out[head], result)
    return out


def reference(query_t, key_t, value):
    times = len(query_t) // len(key_t)
    keys, values = np.repeat(key_t, times, axis=0), np.repeat(value, times, axis=0)
    powers = np.exp(np.einsum("hsq,hsk->hqk", query_t, keys) / np.sqrt(SIZE))
    return np.einsum("hqk,hks->hqs", powers, values) / powers.sum(axis=2, keepdims=True)


def inputs(groups, tokens, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (HEADS, SIZE, tokens), (groups, SIZE, tokens), (groups, tokens, SIZE)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


space = {"groups": [2, 3], "tokens": [64, 96]}
tolerance = (1e-3, 1e-3)
