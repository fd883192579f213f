import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    scaled = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(2):
        nisa.tensor_scalar_reduce(  # NK507
            dst=scaled,
            data=nl.load(x[:, nl.ds(k * 512, 512)]),
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reset_reduce if k == 1 else nisa.reduce_cmd.reduce,
        )
    nisa.dma_copy(dst=out, src=largest)
    return out


inputs = (np.ones((128, 1024), np.float32),)
