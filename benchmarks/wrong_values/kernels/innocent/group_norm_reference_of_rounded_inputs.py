"""Channels less the mean of their group, times the group's inverse deviation; both are given. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

CHANNELS = 12
PIXELS = 20


@nki.jit
def kernel(x, mean, inverse, weight):
    batch = x.shape[0]
    groups = mean.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(batch)[:, None]
    i_pixel = nl.arange(PIXELS)[None, :]
    i_one = nl.arange(1)[None, :]
    means = nl.load(mean)
    inverses = nl.load(inverse)
    for channel in nl.static_range(CHANNELS):
        group = channel // (CHANNELS // groups)
        tile = nl.load(x[i_p, channel * PIXELS + i_pixel])
        centred = nl.subtract(tile, means[i_p, group + i_one])
        norm = nl.multiply(centred, inverses[i_p, group + i_one])
        factor = nl.load(weight[i_p * 0 + channel, i_one])
        result = nl.multiply(norm, factor)
        nl.store(out[i_p, channel * PIXELS + i_pixel], result)
    return out


def reference(x, mean, inverse, weight):
    x = x.astype(np.float16).astype(np.float32)
    pixels = x.reshape(len(x), mean.shape[1], -1, PIXELS)
    norm = (pixels - mean[:, :, None, None]) * inverse[:, :, None, None]
    return (norm.reshape(len(x), CHANNELS, PIXELS) * weight[None]).reshape(x.shape)


def inputs(batch, groups, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch, CHANNELS * PIXELS))
    mean, inverse = rng.standard_normal((batch, groups)), rng.random((batch, groups)) + 0.5
    return tuple(each.astype(np.float32) for each in (x, mean, inverse, rng.random((CHANNELS, 1))))


space = {"batch": [64, 100], "groups": [4, 6]}
tolerance = (1e-5, 1e-6)
