"""Causal attention with a bias that falls with the distance, in the legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

SIZE = 32
SLOPE = 0.5


@nki.jit
def kernel(query_t, key_t, value, places):
    heads, size, tokens = query_t.shape
    out = nl.ndarray(value.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(tokens)[:, None]
    i_f = nl.arange(tokens)[None, :]
    row = nl.load(places.reshape((1, tokens)))
    column = nl.load(places.reshape((tokens, 1)))
    apart = nl.subtract(column, row.broadcast_to((tokens, tokens)))
    for head in nl.affine_range(heads):
        scores = nl.matmul(nl.load(query_t[head]), nl.load(key_t[head]), transpose_x=True)
        biased = nl.add(nl.multiply(scores, size**-0.5), nl.multiply(apart, SLOPE))
        masked = nisa.affine_select(pred=(i_f <= i_p), on_true_tile=biased, on_false_value=-1e30)
        largest = nl.max(masked, axis=1, keepdims=True)
        powers = nl.exp(nl.subtract(masked, largest))
        total = nl.sum(powers, axis=1, keepdims=True)
        mixed = nl.matmul(powers, nl.load(value[head]))
        nl.store(out[head], nl.divide(mixed, total))
    return out


def reference(query_t, key_t, value, places):
    scores = np.einsum("hsq,hsk->hqk", query_t, key_t) / np.sqrt(SIZE)
    scores = scores + 0.5 * (places[None, None, :] - places[None, :, None])
    powers = np.where(places[None, :] <= places[:, None], np.exp(scores), 0)
    return powers @ value / powers.sum(axis=2, keepdims=True)


def inputs(heads, tokens, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (heads, SIZE, tokens), (heads, SIZE, tokens), (heads, tokens, SIZE)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return (*arrays, np.arange(tokens, dtype=np.float32))


space = {"heads": [2, 1], "tokens": [64, 96]}
tolerance = (1e-3, 1e-3)
