"""Causal attention in which a token sees itself and the ``window - 1`` tokens before it."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

HEAD = 32
FAR = -1e30


def _turned(tile):
    swapped = nl.ndarray((tile.shape[1], tile.shape[0]), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=swapped, data=tile)
    return nl.copy(swapped)


@nki.jit
def kernel(query, key, value, window):
    tokens, head = query.shape
    out = nl.ndarray(query.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    product = nl.ndarray((tokens, tokens), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=_turned(nl.load(query)), moving=_turned(nl.load(key)))
    scores = nl.ndarray((tokens, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scores, data=product, op0=nl.multiply, operand0=head**-0.5)
    past = nl.ndarray((tokens, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.affine_select(
        dst=past,
        pattern=[[-1, tokens]],
        offset=0,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=FAR,
        cmp_op=nl.greater_equal,
    )
    near = nl.ndarray((tokens, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.affine_select(
        dst=near,
        pattern=[[1, tokens]],
        offset=window,
        channel_multiplier=-1,
        on_true_tile=past,
        on_false_value=FAR,
        cmp_op=nl.greater_equal,
    )
    lowest = nl.ndarray((tokens, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=near, axis=1, negate=True)
    powers = nl.ndarray((tokens, tokens), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=powers, op=nl.exp, data=near, bias=lowest)
    total = nl.ndarray((tokens, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
    nisa.reciprocal(dst=total, data=total)
    mixed = nl.ndarray((tokens, head), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=mixed, stationary=_turned(powers), moving=nl.load(value))
    result = nl.ndarray((tokens, head), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=mixed, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=result)
    return out


def reference(query, key, value, window):
    place = np.arange(len(query))
    apart = place[:, None] - place[None, :]
    scores = query @ key.T / np.sqrt(query.shape[1])
    powers = np.where((apart >= 0) & (apart < window), np.exp(scores), 0)
    return powers @ value / powers.sum(axis=1, keepdims=True)


def inputs(tokens, window, seed=0):
    rng = np.random.default_rng(seed)
    return (*rng.standard_normal((3, tokens, HEAD)).astype(np.float32), window)


space = {"tokens": [96, 128], "window": [12, 30]}
tolerance = (1e-3, 1e-3)
