"""The high and the low word of the product of 32-bit integers, from products of half words."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

LANES = 128
HALF = 16
LOW = 0xFFFF


def _multiply(x, y, high, low):
    left, right = x[...], y[...]
    x_high, x_low = left >> HALF, left & LOW
    y_high, y_low = right >> HALF, right & LOW
    highest = x_high * y_high
    cross = x_high * y_low
    other = x_low * y_high
    lowest = x_low * y_low
    carry = (cross & LOW) + (other & LOW) + (lowest >> HALF)
    high[...] = highest + (cross >> HALF) + (other >> HALF) + (carry >> HALF)
    low[...] = lowest


@jax.jit
def kernel(x, y):
    block = pl.BlockSpec((8, LANES), lambda i: (i, 0))
    return pl.pallas_call(
        _multiply,
        out_shape=[jax.ShapeDtypeStruct(x.shape, jnp.uint32)] * 2,
        grid=(x.shape[0] // 8,),
        in_specs=[block, block],
        out_specs=[block, block],
    )(x, y)


def reference(x, y):
    product = x.astype(np.uint64) * y.astype(np.uint64)
    return (product >> 32).astype(np.uint32), (product & 0xFFFFFFFF).astype(np.uint32)


def inputs(rows, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 2**32, (2, rows, LANES), dtype=np.uint32))


space = {"rows": [16, 32]}
tolerance = (0.0, 0.0)
