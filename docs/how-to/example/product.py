import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def product(x, y, *, block):
    """x [M, K] @ y [K, N] in bfloat16, a block x block piece of the result at a time."""

    def kernel(x_block, y_block, out_block):
        out_block[...] = jnp.dot(x_block[...], y_block[...], preferred_element_type=jnp.float32).astype(out_block.dtype)

    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.bfloat16),
        grid=(m // block, n // block),
        in_specs=[
            pl.BlockSpec((block, k), lambda row, column: (row, 0)),
            pl.BlockSpec((k, block), lambda row, column: (0, column)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda row, column: (row, column)),
    )(x, y)
