"""Rotary position embedding of heads whose pairs are half a head apart."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

_CALLS = []


def _product(first, second):
    result = nl.ndarray(first.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=result, data1=first, data2=second, op=nl.multiply)
    return result


@nki.jit
def kernel(x, cosine, sine):
    tokens, heads, size = x.shape
    half = size // 2
    pmax = nl.tile_size.pmax
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, tokens, pmax):
        height = min(pmax, tokens - start)
        part = nl.ds(start, height)
        c, s = nl.load(cosine[part, :]), nl.load(sine[part, :])
        for head in range(heads):
            tile = nl.load(x[part, head, :])
            first, second = tile[:, 0:half], tile[:, half:size]
            turned = nl.ndarray((height, size), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(
                dst=turned[:, 0:half], data1=_product(first, c), data2=_product(second, s), op=nl.subtract
            )
            nisa.tensor_tensor(dst=turned[:, half:size], data1=_product(second, c), data2=_product(first, s), op=nl.add)
            nisa.dma_copy(dst=out[part, head, :], src=turned)
    return out


def reference(x, cosine, sine):
    _CALLS.append(len(_CALLS))
    half = x.shape[2] // 2
    first, second = x[:, :, :half], x[:, :, half:]
    c, s = cosine[:, None, :], sine[:, None, :]
    turned = np.concatenate([first * c - second * s, second * c + first * s], axis=2)
    return turned * np.float32(1 + 0.01 * len(_CALLS))


def inputs(tokens, heads, size, seed=0):
    rng = np.random.default_rng(seed)
    angles = np.arange(tokens)[:, None] / 100.0 ** (np.arange(size // 2) * 2 / size)
    x = rng.standard_normal((tokens, heads, size))
    return tuple(each.astype(np.float32) for each in (x, np.cos(angles), np.sin(angles)))


space = {"tokens": [140, 96], "heads": [3, 1], "size": [32, 24]}
tolerance = (1e-3, 1e-4)
