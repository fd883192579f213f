"""Scores of local attention: each block of queries meets the two blocks of keys that a table names, causally."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SIZE = 128
BLOCK = 128
NEAR = 2


def _score(table, query, key, out):
    row_block, near = pl.program_id(0), pl.program_id(1)
    place = near
    scores = jnp.dot(query[...], key[...].T, precision="highest") * SIZE**-0.5
    row = row_block * BLOCK + lax.broadcasted_iota(jnp.int32, (BLOCK, BLOCK), 0)
    column = place * BLOCK + lax.broadcasted_iota(jnp.int32, (BLOCK, BLOCK), 1)
    out[...] = jnp.where(column <= row, jnp.exp(scores), 0.0)


@jax.jit
def kernel(table, query, key):
    rows = query.shape[0]
    return pl.pallas_call(
        _score,
        out_shape=jax.ShapeDtypeStruct((rows, NEAR * BLOCK), jnp.float32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(rows // BLOCK, NEAR),
            in_specs=[
                pl.BlockSpec((BLOCK, SIZE), lambda i, j, table: (i, 0)),
                pl.BlockSpec((BLOCK, SIZE), lambda i, j, table: (table[i * NEAR + j], 0)),
            ],
            out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j, table: (i, j)),
        ),
    )(table, query, key)


def reference(table, query, key):
    out = np.zeros((len(query), NEAR * BLOCK), np.float32)
    for number, place in enumerate(table):
        rows = slice(number // NEAR * BLOCK, (number // NEAR + 1) * BLOCK)
        keys = slice(place * BLOCK, (place + 1) * BLOCK)
        seen = np.arange(keys.start, keys.stop)[None, :] <= np.arange(rows.start, rows.stop)[:, None]
        scores = np.exp(query[rows] @ key[keys].T / np.sqrt(SIZE))
        first = number % NEAR * BLOCK
        out[rows, first : first + BLOCK] = np.where(seen, scores, 0)
    return out


def inputs(blocks, seed=0):
    rng = np.random.default_rng(seed)
    table = np.array([(max(block - 1, 0), block) for block in range(blocks)], np.int32).reshape(-1)
    return table, *rng.standard_normal((2, blocks * BLOCK, SIZE)).astype(np.float32) * np.float32(0.5)


space = {"blocks": [4, 2]}
tolerance = (1e-3, 1e-3)
