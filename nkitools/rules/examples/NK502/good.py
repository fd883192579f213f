import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

CHIP = "trn2"


@nki.jit
def tables(data):
    sums = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    out = nl.ndarray((2, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    nisa.dma_copy(dst=sums[nl.ds(core, 1), :], src=nl.load(data[nl.ds(core, 1), :]))
    nisa.core_barrier(data=sums, cores=(0, 1))
    other = nl.load(sums[nl.ds(1 - core, 1), :])
    nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=other)
    return out


kernel = tables[2]
inputs = (np.ones((2, 512), np.float32),)
