import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nl.device_print("doubled", tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


x = np.ones((128, 4), dtype=np.float32)
y = nki.simulate(double)(x)
print("the sum is", y.sum())
