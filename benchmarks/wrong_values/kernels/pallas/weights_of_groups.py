"""Blocks of rows, each times the weights of its group."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 32
BLOCK = 128
GROUPS = 3


def _multiply(groups, x, weight, out):
    del groups
    out[...] = jnp.dot(x[...], weight[0], precision="highest")


@jax.jit
def kernel(groups, x, weights):
    rows, depth = x.shape
    columns = weights.shape[2]
    return pl.pallas_call(
        _multiply,
        out_shape=jax.ShapeDtypeStruct((rows, columns), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(rows // ROWS, columns // BLOCK),
            in_specs=[
                pl.BlockSpec((ROWS, depth), lambda i, j, groups: (i, 0)),
                pl.BlockSpec((1, depth, BLOCK), lambda i, j, groups: (groups[j], 0, j)),
            ],
            out_specs=pl.BlockSpec((ROWS, BLOCK), lambda i, j, groups: (i, j)),
        ),
    )(groups, x, weights)


def reference(groups, x, weights):
    parts = x.reshape(len(groups), ROWS, -1)
    return np.concatenate([part @ weights[group] for part, group in zip(parts, groups, strict=True)])


def inputs(blocks, columns, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.arange(blocks, dtype=np.int32) * 2 % GROUPS
    x = rng.standard_normal((blocks * ROWS, 128)).astype(np.float32)
    return groups, x, rng.standard_normal((GROUPS, 128, columns)).astype(np.float32)


space = {"blocks": [4, 3], "columns": [256, 128]}
tolerance = (1e-3, 1e-3)
