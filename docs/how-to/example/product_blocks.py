import functools

import jax
import jax.numpy as jnp
from product import product

import nkitools.pallas

x = y = jax.ShapeDtypeStruct((8192, 8192), jnp.bfloat16)
table = nkitools.pallas.sweep(
    lambda block: functools.partial(product, block=block), *(x, y), blocks=[128, 256], chips=("v5e", "v6e")
)
print(table)
