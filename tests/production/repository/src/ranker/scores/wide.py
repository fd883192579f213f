"""Scores of wide rows: refused, since a tile has 256 partitions."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def wide_scores(x):
    """Return the sum of each of 256 rows."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=sums, op=nl.add, data=tile, axis=1)
    nisa.dma_copy(dst=out, src=sums)
    return out
