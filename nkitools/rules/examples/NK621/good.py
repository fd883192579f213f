import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def counted_down(count):
    out = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=count)

    def turn(steps):
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(steps, left)
        return steps

    steps = nisa.register_alloc()
    nisa.register_load(steps, count)
    nl.while_loop(steps, turn)
    nisa.dma_copy(dst=out, src=left)
    return out


CHIP = "trn2"
kernel = counted_down
inputs = (np.array([[3]], np.int32),)
