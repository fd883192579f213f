import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)  # NK505
    return table


inputs = (np.ones((16, 64), np.float32), np.array([[3], [7], [3], [9]], np.int32), np.ones((4, 64), np.float32))
