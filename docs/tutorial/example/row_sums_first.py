"""The sum of every row, first try."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def row_sums(x):
    rows, columns = x.shape
    out = nl.ndarray((rows, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    sums = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=sums, op=nl.add, data=tile, axis=1)
    nisa.dma_copy(dst=out, src=sums)
    return out
