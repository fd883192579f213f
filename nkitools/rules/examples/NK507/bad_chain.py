import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    doubled = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_reduce(
        dst=doubled, data=tile, op0=nl.multiply, operand0=2.0, reduce_op=nl.maximum, reduce_res=largest
    )
    nisa.tensor_scalar_reduce(  # NK507
        dst=doubled,
        data=doubled,
        op0=nl.subtract,
        operand0=largest,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reduce,
    )
    nisa.dma_copy(dst=out, src=total)
    return out


inputs = (np.ones((128, 64), np.float32),)
