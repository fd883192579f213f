import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 16384), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 16384), dtype=nl.float32)
    blocks = []
    for i in range(5):
        block = nl.load(x[i * 128 : (i + 1) * 128, :])  # NK202
        blocks.append(block)
    for block in blocks:
        nisa.tensor_tensor(dst=total, data1=total, data2=block, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((640, 16384), np.float32),)
