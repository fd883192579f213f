"""Sums of rows."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def row_sums(x):
    """x [128 n, W]: a column of the sums of its rows."""
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, x.shape[0], 128):
        rows = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=x[i : i + 128, :])
        nisa.tensor_reduce(dst=total, op=nl.add, data=rows, axis=1)
        nisa.dma_copy(dst=out[i : i + 128, :], src=total)
    return out
