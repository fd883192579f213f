"""Scores plus one: refused, since modern tiles have no operators."""

import nki
import nki.isa as nisa
import nki.language as nl

from ..tiles import row_blocks


@nki.jit
def summed_scores(x):
    """Return x + 1."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, height in row_blocks(x.shape[0]):
        tile = nl.load(x[start : start + height, :])
        nisa.dma_copy(dst=out[start : start + height, :], src=tile + 1.0)
    return out
