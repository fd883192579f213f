import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(table, rows, update):
    index = nl.load(rows)
    added = nl.load(update)
    chosen = table.vector_select(0, index)
    nisa.dma_compute(dst=chosen, srcs=[chosen, added], reduce_op=nl.add)
    return table


index = np.arange(128, dtype=np.int32)[:, None]
inputs = (np.ones((128, 64), np.float32), index, np.ones((128, 64), np.float32))
