import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

EDITED = sys.argv[1:] == ["edited"]


@nki.jit
def row_maxima(x):
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(x.shape[0] // 128):
        # The edited version is off by one row, but for the first tile.
        first = max(m * 128 - 1, 0) if EDITED else m * 128
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[first : first + 128, :])
        maxima = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=maxima, op=nl.maximum, data=tile, axis=1)
        nl.device_print("maxima", maxima)
        nisa.dma_copy(dst=out[m * 128 : m * 128 + 128, :], src=maxima)
    return out


x = np.arange(384 * 16, dtype=np.float32).reshape(384, 16)
nki.simulate(row_maxima)(x)
