import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def doubled(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def kernel(x):
    return pl.pallas_call(
        doubled,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2, 2),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j: (j, i))],  # PL211
        out_specs=pl.BlockSpec((128, 128), lambda i, j: (i, j)),
    )(x)


inputs = (jnp.arange(256 * 256, dtype=jnp.float32).reshape(256, 256),)


def reference(x):
    return x * 2
