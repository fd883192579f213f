import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 32768), dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.load(x)
    doubled = nl.ndarray((128, 32768), dtype=x.dtype)
    # 128 KiB of each partition are read, and as many written: no compiler finds room for both.
    nisa.tensor_scalar(dst=doubled, data=data, op0=nl.multiply, operand0=2.0)  # NK202
    nisa.dma_copy(dst=out, src=doubled)
    return out


inputs = (np.ones((128, 32768), np.float32),)
