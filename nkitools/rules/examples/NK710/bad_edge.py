import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHIP = "trn2"  # the load of a table has been profiled there


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for function in (nl.exp, nl.tanh, nl.exp, nl.tanh):
        nisa.activation(dst=tile[:, nl.ds(0, 512)], op=function, data=tile[:, nl.ds(0, 512)])  # NK710
    nisa.dma_copy(dst=out, src=tile)
    return out


inputs = (np.ones((128, 4096), np.float32),)
