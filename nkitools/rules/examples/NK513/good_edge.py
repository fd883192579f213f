import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def row_sums(x):
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    powers = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(
        dst=powers, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=sums, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )
    nl.store(out, sums)
    return out


kernel = row_sums
inputs = (np.ones((128, 64), np.float32),)
