"""A matrix product of blocks, summed in scratch."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

STEPS = 2


def multiply(x_ref, y_ref, o_ref, total):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == STEPS - 1)
    def _():
        o_ref[...] = total[...]


def kernel(x, y):
    return pl.pallas_call(
        multiply,
        out_shape=jax.ShapeDtypeStruct((256, 384), jnp.float32),
        grid=(2, 3, STEPS),
        in_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


def reference(x, y):
    return x @ y


_random = np.random.default_rng(27)
inputs = (
    _random.integers(-4, 5, (256, 256)).astype(np.float32),
    _random.integers(-4, 5, (256, 384)).astype(np.float32),
)
tolerance = (1e-5, 1e-4)
