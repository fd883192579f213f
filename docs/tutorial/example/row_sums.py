"""The sum of every row."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def row_sums(x):
    rows, columns = x.shape
    height = nl.tile_size.pmax
    out = nl.ndarray((rows, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(rows // height):
        here = slice(t * height, (t + 1) * height)
        tile = nl.ndarray((height, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here, :])
        sums = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=sums, op=nl.add, data=tile, axis=1)
        nl.device_print("sums", sums)
        nisa.dma_copy(dst=out[here, :], src=sums)
    return out
