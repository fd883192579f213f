"""A causal convolution of each channel by its own four taps, and silu. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

TAPS = 4


@nki.jit
def kernel(x, weight, bias):
    channels, steps = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(channels)[:, None]
    i_f = nl.arange(steps)[None, :]
    i_one = nl.arange(1)[None, :]
    padded = nl.zeros((nl.par_dim(channels), steps + TAPS - 1), dtype=nl.float32, buffer=nl.sbuf)
    padded[i_p, i_f + (TAPS - 2)] = nl.load(x)
    taps = nl.load(weight)
    total = nl.zeros((nl.par_dim(channels), steps), dtype=nl.float32, buffer=nl.sbuf)
    for tap in nl.static_range(TAPS):
        part = padded[i_p, i_f + tap]
        factor = taps[i_p, tap + i_one]
        total[i_p, i_f] = nl.add(total[i_p, i_f], nl.multiply(part, factor))
    shifted = nl.subtract(total, nl.load(bias))
    result = nl.multiply(shifted, nl.sigmoid(shifted))
    nl.store(out, result)
    return out


def reference(x, weight, bias):
    padded = np.pad(x, ((0, 0), (TAPS - 1, 0)))
    total = bias + sum(padded[:, tap : tap + x.shape[1]] * weight[:, tap : tap + 1] for tap in range(TAPS))
    return total / (1 + np.exp(-total))


def inputs(channels, steps, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (channels, steps), (channels, TAPS), (channels, 1)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


space = {"channels": [64, 100], "steps": [80, 50]}
tolerance = (1e-3, 1e-4)
