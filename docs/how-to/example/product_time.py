import functools

import jax.numpy as jnp
from product import product

import nkitools.pallas

x = y = jnp.ones((8192, 8192), jnp.bfloat16)
print(nkitools.pallas.measure(functools.partial(product, block=256), x, y, operations=2 * 8192**3))
