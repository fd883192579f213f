import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile[:, 1:512], data1=tile[:, 1:512], data2=tile[:, 0:511], op=nl.add)  # NK510
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 512), np.float32),)
