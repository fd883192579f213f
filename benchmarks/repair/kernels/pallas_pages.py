"""Pages that a table names, the table prefetched."""

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy(table_ref, page_ref, o_ref):
    o_ref[...] = page_ref[...]


def kernel(table, pages):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(table.shape[0],),
        in_specs=[pl.BlockSpec((1, 8, 128), lambda i, table: (table[i], 0, 0))],
        out_specs=pl.BlockSpec((1, 8, 128), lambda i, table: (i, 0, 0)),
    )
    return pl.pallas_call(copy, out_shape=jax.ShapeDtypeStruct((4, 8, 128), pages.dtype), grid_spec=spec)(table, pages)


def reference(table, pages):
    return pages[table]


inputs = (np.array([5, 0, 3, 3], np.int32), np.random.default_rng(29).random((6, 8, 128), np.float32))
tolerance = (1e-6, 1e-6)
