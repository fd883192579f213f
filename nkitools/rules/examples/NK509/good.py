import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(table, rows, values):
    index = nl.load(rows)
    tile = nl.load(values)
    nisa.dma_copy(dst=table.vector_select(0, index), src=tile)
    return table


values = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [5], [9]], np.int32), values)
