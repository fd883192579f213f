"""Kernels of two cores that talk: one result in every interleaving, which is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.cases import cases
from tests.isa.talking import (  # noqa: F401 - a fixture
    X,
    exchange,
    hbm,
    no_thread_outlives_its_run,
    ping_pong,
    ping_pong_by_numpy,
    sbuf,
    swapped,
    swapped_by_numpy,
)


@nki.jit
def mean_of_rows(x: Any) -> Any:
    """Sums of each half by either core, through shared memory: rows minus the mean of all rows."""
    sums, out = hbm((2, x.shape[1])), hbm(x.shape)
    core = nl.program_id(0)
    rows = nl.ds(64 * core, 64)
    half = nl.load(x[rows, :])
    ones, total = sbuf((64, 64)), nl.ndarray((64, x.shape[1]), nl.float32, buffer=nl.psum)
    nisa.memset(ones, 1.0)
    nisa.nc_matmul(dst=total, stationary=ones, moving=half)
    row = sbuf((1, x.shape[1]))
    nisa.tensor_copy(dst=row, src=total[0:1, :])
    nisa.dma_copy(dst=sums[nl.ds(core, 1), :], src=row)
    nisa.core_barrier(data=sums, cores=(0, 1))
    mean = sbuf((64, x.shape[1]))
    nisa.memset(mean, 0.0)
    for each in range(2):
        copies = sbuf((64, x.shape[1]))
        nisa.dma_copy(dst=copies, src=sums.ap([[0, 64], [1, x.shape[1]]], offset=each * x.shape[1]))
        nisa.tensor_tensor(mean, mean, copies, nl.add)
    nisa.tensor_scalar(mean, mean, nl.multiply, 1 / 128)
    nisa.tensor_tensor(half, half, mean, nl.subtract)
    nisa.dma_copy(dst=out[rows, :], src=half)
    return out


def mean_of_rows_by_numpy(x: Any) -> Any:
    return x - x.mean(axis=0)


@nki.jit
def halves_of_one_tile(x: Any) -> Any:
    """src and dst are parts of one tensor, on two pipes, inside of an inlined kernel."""
    out = hbm((2, *x.shape))
    core = nl.program_id(0)
    tiles = sbuf((128, 4, 8))
    both(x, tiles, core)
    nisa.dma_copy(dst=out[core], src=tiles[:, 0:2, :].reshape((128, 16))[:, 0:8])
    return out


@nki.jit
def both(x: Any, tiles: Any, core: int) -> None:
    nisa.dma_copy(dst=tiles[:, core, :], src=x)
    nisa.tensor_scalar(tiles[:, core, :], tiles[:, core, :], nl.add, float(core))
    exchange(tiles[:, nl.ds(core, 1), :], tiles[:, nl.ds(1 - core, 1), :], pipe=0)
    exchange(tiles[:, 0:2, :], tiles[:, 2:4, :], pipe=1)


def halves_of_one_tile_by_numpy(x: Any) -> Any:
    return np.stack([x, x])


KERNELS = [
    (swapped, swapped_by_numpy),
    (mean_of_rows, mean_of_rows_by_numpy),
    (ping_pong, ping_pong_by_numpy),
    (halves_of_one_tile, halves_of_one_tile_by_numpy),
]
SEEDS = cases(1000)  # of each kernel
COMPARED = 8  # orders, among which several must differ


@pytest.mark.soak
@pytest.mark.parametrize(("kernel", "by_numpy"), KERNELS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_interleaving_gives_one_result(kernel: Any, by_numpy: Any) -> None:
    """And no finding; the order of the programs' instructions differs."""
    expected = by_numpy(X)
    orders = set()
    for seed in [None, *map(str, range(SEEDS))]:
        with options.override(schedule_seed=seed):
            run = nkitools.simulate(kernel, X.copy(), grid=2)
        np.testing.assert_allclose(run.outputs, expected, rtol=1e-6)
        assert run.findings == []
        if seed is None or int(seed) < COMPARED:
            orders.add(tuple(each.program for each in run.instructions))
    assert len(orders) > 2
