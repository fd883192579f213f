"""A matrix product by blocks, summed in scratch memory."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK = 128


def _multiply(x, y, out, total):
    @pl.when(pl.program_id(1) == 0)
    def _clear():
        total[...] = jnp.zeros(total.shape, total.dtype)

    total[...] += jnp.dot(x[...], y[...], precision="highest")

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _write():
        out[...] = total[...]


@jax.jit
def kernel(x, y):
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        _multiply,
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
        grid=(m // BLOCK, n // BLOCK, k // BLOCK),
        in_specs=[
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, step: (i, step)),
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, step: (step, j)),
        ],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j, step: (i, j)),
        scratch_shapes=[pltpu.VMEM((BLOCK, BLOCK), jnp.float32)],
    )(x, y)


def reference(x, y):
    return x @ y


def inputs(m, k, n, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))


space = {"m": [128, 256], "k": [256, 128], "n": [256, 128]}
tolerance = (1e-3, 1e-3)
