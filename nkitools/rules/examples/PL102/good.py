import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def kernel(x):
    block = pl.BlockSpec((32, 128), lambda i: (i, 0))
    return pl.pallas_call(
        copy, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,), in_specs=[block], out_specs=block
    )(x)


inputs = (jnp.ones((128, 128), jnp.int8),)
