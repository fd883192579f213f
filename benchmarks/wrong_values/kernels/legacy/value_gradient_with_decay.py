"""The gradient of the values in a chunk of gated linear attention: from the state, and from the chunk. Legacy."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

SIZE = 32
VALUES = 40


@nki.jit
def kernel(query_t, key_t, gradient, state_gradient, decay):
    size, tokens = query_t.shape
    out = nl.ndarray((tokens, VALUES), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p = nl.arange(tokens)[:, None]
    i_f = nl.arange(tokens)[None, :]
    column = nl.load(decay)
    i_one = nl.arange(1)[:, None]
    row = nl.load(decay.reshape((1, tokens))[i_one, i_f])
    last = nl.load(decay[tokens - 1 : tokens, :]).broadcast_to((tokens, 1))
    keys = nl.load(key_t)
    from_state = nl.copy(nisa.nc_matmul(keys, nl.load(state_gradient)))
    faded = nl.exp(nl.subtract(last, column))
    later = nl.copy(from_state)
    scores = nl.copy(nisa.nc_matmul(nl.load(query_t), keys))
    apart = nl.exp(nl.subtract(column, row.broadcast_to((tokens, tokens))))
    causal = nisa.affine_select(pred=(i_f <= i_p), on_true_tile=nl.multiply(scores, apart), on_false_value=0.0)
    from_chunk = nisa.nc_matmul(causal, nl.load(gradient))
    nl.store(out, nl.add(later, from_chunk))
    return out


def reference(query_t, key_t, gradient, state_gradient, decay):
    apart = decay - decay.T
    scores = np.tril(query_t.T @ key_t * np.exp(np.minimum(apart, 0)))
    return scores.T @ gradient + key_t.T @ state_gradient * np.exp(decay[-1] - decay)


def inputs(tokens, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (SIZE, tokens), (SIZE, tokens), (tokens, VALUES), (SIZE, VALUES)
    arrays = [rng.standard_normal(shape) * 0.3 for shape in shapes]
    decay = -np.cumsum(rng.random((tokens, 1)) * 0.05, axis=0)
    return tuple(each.astype(np.float32) for each in (*arrays, decay))


space = {"tokens": [64, 100]}
tolerance = (1e-3, 1e-3)
