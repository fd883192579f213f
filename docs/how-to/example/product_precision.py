import functools

import jax.numpy as jnp
import numpy as np
from product import product

from nkitools.pallas import precision_split

x, y = np.random.default_rng(0).standard_normal((2, 256, 256)).astype(jnp.bfloat16)
print(precision_split(functools.partial(product, block=128), x, y, reference=np.matmul))
