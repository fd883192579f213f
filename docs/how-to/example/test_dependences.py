"""Questions to a run: which instruction wrote the elements that another one reads."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def smoothed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:256], src=x[:, 0:256])  # 0
    nisa.dma_copy(dst=tile[:, 256:512], src=x[:, 256:512])  # 1
    total = nl.ndarray((128, 511), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=total, data1=tile[:, 0:511], data2=tile[:, 1:512], op=nl.add)  # 2
    nisa.tensor_copy(dst=tile[:, 0:511], src=total)  # 3
    nisa.dma_copy(dst=out, src=tile)  # 4
    return out


def test_who_wrote_the_elements_that_each_instruction_reads(run_kernel):
    """The last copy out reads 511 new columns, and one that the second load brought."""
    run_kernel(smoothed, np.ones((128, 512), np.float32))
    flow = run_kernel.run.dependences.flow
    assert [list(row) for row in flow] == [[-1], [-1], [0, 1], [2], [1, 3]]


def test_what_an_instruction_has_to_wait_for(run_kernel):
    """Instruction 3 writes over elements that 0 and 1 wrote and 2 has read: it may not run before 2."""
    run_kernel(smoothed, np.ones((128, 512), np.float32))
    dependences = run_kernel.run.dependences
    assert list(dependences.output[3]) == [0, 1]
    assert list(dependences.anti[3]) == [2]
