import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def shifted(x_ref, o_ref):
    i = pl.program_id(0)
    o_ref[...] = x_ref[pl.ds(i * 8 + 8, 8), :]  # PL201


def kernel(x):
    return pl.pallas_call(
        shifted,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec(x.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
    )(x)


inputs = (jnp.ones((32, 128), jnp.float32),)
