import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools


@nki.jit
def flipped(x):
    """Each core writes its half of the rows, and reads the half of the other one."""
    core, half = nl.program_id(0), x.shape[0] // 2
    mine, theirs = nl.ds(core * half, half), nl.ds((1 - core) * half, half)
    shared = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=shared[mine, :], src=x[mine, :])
    nisa.core_barrier(data=shared, cores=(0, 1))
    nisa.dma_copy(dst=out[mine, :], src=shared[theirs, :])
    return out


def test_two_cores(run_kernel):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(run_kernel(flipped[2], x), np.roll(x, 2, axis=0))


@nki.jit
def total(x, ranks):
    """The sum of every rank's x, on every rank."""
    mine = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    reduced = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    nisa.dma_copy(dst=mine, src=x)
    ncc.all_reduce([mine], [reduced], ncc.ReplicaGroup([list(range(ranks))]), nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=reduced)
    return out


@pytest.mark.sim
def test_four_ranks():
    shards = [np.full((2, 3), rank, np.float32) for rank in range(4)]
    run = nkitools.simulate(total, *((shard, 4) for shard in shards), ranks=4)
    assert len(run.outputs) == 4
    for output in run.outputs:
        np.testing.assert_array_equal(output, np.full((2, 3), 6, np.float32))
