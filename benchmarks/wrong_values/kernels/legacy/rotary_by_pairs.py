"""Rotary position embedding of rows whose pairs are neighbours. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, cosine, sine):
    tokens, size = x.shape
    half = size // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(size)[None, :]
    i_h = nl.arange(half)[None, :]
    for i in nl.affine_range((tokens + 127) // 128):
        inside = i * 128 + i_p < tokens
        tile = nl.load(x[i * 128 + i_p, i_f], mask=inside)
        c = nl.load(cosine[i * 128 + i_p, i_h], mask=inside)
        s = nl.load(sine[i * 128 + i_p, i_h], mask=inside)
        turned = nl.ndarray((nl.par_dim(128), size), dtype=nl.float32, buffer=nl.sbuf)
        first = tile[i_p, 2 * i_h]
        second = tile[i_p, 2 * i_h + 1]
        turned[i_p, 2 * i_h] = nl.subtract(
            nl.multiply(first, c, mask=inside), nl.multiply(second, s, mask=inside), mask=inside
        )
        crossed = tile[i_p, 2 * i_h + 1]
        turned[i_p, 2 * i_h + 1] = nl.add(
            nl.multiply(second, c, mask=inside), nl.multiply(crossed, s, mask=inside), mask=inside
        )
        nl.store(out[i * 128 + i_p, i_f], turned[i_p, i_f], mask=inside)
    return out


def reference(x, cosine, sine):
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * (cosine + 1j * sine)
    return np.stack([turned.real, turned.imag], axis=2).reshape(x.shape)


def inputs(tokens, size, seed=0):
    rng = np.random.default_rng(seed)
    angles = rng.random((tokens, size // 2)) * 6
    x = rng.standard_normal((tokens, size))
    return tuple(each.astype(np.float32) for each in (x, np.cos(angles), np.sin(angles)))


space = {"tokens": [150, 96], "size": [32, 64]}
tolerance = (1e-3, 1e-4)
