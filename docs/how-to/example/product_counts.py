import functools

import jax
import jax.numpy as jnp
from product import product

import nkitools.pallas

x = y = jax.ShapeDtypeStruct((4096, 4096), jnp.bfloat16)
for block in (256, 512):
    print(nkitools.pallas.estimate(functools.partial(product, block=block), x, y, by="counts", chips="v5e,v6e"))
