"""A convolution by filters of three by three, a product for each tap. Legacy dialect."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

TAPS = 3


@nki.jit
def kernel(image, weight):
    channels, height, width = image.shape
    filters = weight.shape[3]
    below, beside = height - TAPS + 1, width - TAPS + 1
    out = nl.ndarray((filters, below, beside), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(image)
    total = nl.zeros((nl.par_dim(filters), below, beside), dtype=nl.float32, buffer=nl.psum)
    p, y, x = nl.mgrid[0:channels, 0:below, 0:beside]
    i_c = nl.arange(channels)[:, None]
    i_o = nl.arange(filters)[None, :]
    for row in nl.affine_range(TAPS):
        for column in nl.affine_range(TAPS):
            taps = nl.load(weight[i_c, row, column, i_o])
            moving = tile[p, row + y, column + x]
            total += nisa.nc_matmul(taps, moving)
    nl.store(out, total)
    return out


def reference(image, weight):
    below, beside = image.shape[1] - TAPS + 1, image.shape[2] - TAPS + 1
    out = np.zeros((weight.shape[3], below, beside))
    for row in range(TAPS):
        for column in range(TAPS):
            part = image[:, row : row + below, column : column + beside]
            out += np.einsum("co,cyx->oyx", weight[:, row, column], part)
    return out


def inputs(channels, size, filters, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (channels, size, size), (channels, TAPS, TAPS, filters)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)


space = {"channels": [16, 32], "size": [10, 8], "filters": [20, 32]}
tolerance = (1e-9, 1e-9)
