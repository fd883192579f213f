"""The queues of transfers, what engines wait for, and tables of functions: times worked out by hand on trn2."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts.generations import GENERATIONS
from nkitools.facts.laws import profiled
from nkitools.record.run import Run
from nkitools.timing.durations import ENGINES
from nkitools.timing.knobs import knobs_of
from nkitools.timing.queues import order_of
from nkitools.timing.timeline import Timeline, timeline_of

TRN2 = GENERATIONS["trn2"]
SEMAPHORE_NS, ISSUE_NS, TABLE_NS = 54.0, 561.5, 1283.0  # of profiles: laws.tsv


def made(run: Run) -> Timeline:
    return timeline_of(run, TRN2, knobs_of(TRN2))


def named(run: Run, name: str) -> list[int]:
    return [at for at, each in enumerate(run.instructions) if each.name == name]


@nki.jit
def sums(x: Any, at_once: int) -> Any:
    """Return the sums of pairs of columns, whose parts are loaded at once or one by one."""
    out = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
    for part in range(at_once):
        columns = nl.ds(part * 512 // at_once, 512 // at_once)
        nisa.dma_copy(dst=tile[:, columns], src=x[:, columns])
    nisa.tensor_tensor(dst=result, data1=tile[:, 0:256], data2=tile[:, 256:512], op=nl.add)
    nisa.tensor_tensor(dst=result, data1=result, data2=tile[:, 256:512], op=nl.add)
    nisa.dma_copy(dst=out, src=result)
    return out


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_an_engine_waits_once_for_the_last_transfer_of_a_queue(parts: int) -> None:
    """The first reader takes a semaphore's time longer than the second, however many transfers of the line it needs."""
    run = nkitools.simulate(sums, np.ones((128, 512), np.float32), parts, chip="trn2")
    first, second = made(run).work.durations[named(run, "tensor_tensor")]
    assert first - second == pytest.approx(SEMAPHORE_NS)


def test_transfers_of_a_line_start_one_after_the_other_in_their_order() -> None:
    """Hardware makes the descriptors of one of them in 561.5 ns; small ones are moved in less."""
    run = nkitools.simulate(sums, np.ones((128, 512), np.float32), 8, chip="trn2")
    starts = made(run).schedule.starts[named(run, "dma_copy")[:8]]
    np.testing.assert_allclose(np.diff(starts), ISSUE_NS)


@nki.jit
def cleared(x: Any) -> Any:
    """Return x plus zeros, all of which are written before any is used."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = []
    for _ in range(4):
        tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=0.0)
        tiles.append(tile)
    for n, tile in enumerate(tiles):
        part = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part, src=x[:, nl.ds(n * 512, 512)])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=part, op=nl.add)
        nisa.dma_copy(dst=out[:, nl.ds(n * 512, 512)], src=tile)
    return out


def test_a_memset_stands_before_the_first_use_of_its_tile() -> None:
    """On the engine of both, each sum follows its own memset, and the next memset comes after it."""
    run = nkitools.simulate(cleared, np.ones((128, 2048), np.float32), chip="trn2")
    timeline = made(run)
    memsets, adds = named(run, "memset"), named(run, "tensor_tensor")
    assert {ENGINES[kind] for kind in timeline.kinds[[*memsets, *adds]]} == {"vector"}
    starts = timeline.schedule.starts
    assert [each for pair in zip(memsets, adds, strict=True) for each in pair] == sorted(
        [*memsets, *adds], key=lambda at: float(starts[at])
    )


def test_the_order_moves_nothing_behind_its_first_use() -> None:
    """An instruction goes right before the earliest of those that need it; one that nothing needs goes to the end."""
    uses = [(np.array([4, 3]), np.array([0, 1])), (np.array([2]), np.array([0]))]
    order = order_of(uses, 6, np.array([0, 1, 5]))
    assert order is not None
    assert np.argsort(order).tolist() == [0, 2, 1, 3, 4, 5]
    assert order_of(uses, 6, np.zeros(0, np.int64)) is None


@nki.jit
def products(a: Any, b: Any, count: int) -> Any:
    """Return products of one PSUM tile, which is set to zero before each."""
    out = nl.ndarray((128, 512 * count), dtype=a.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 512 * count), dtype=a.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for n in range(count):
        nisa.memset(dst=total, value=0.0)
        nisa.nc_matmul(dst=total, stationary=left, moving=right)
        nisa.tensor_copy(dst=result[:, nl.ds(n * 512, 512)], src=total)
    nisa.dma_copy(dst=out, src=result)
    return out


def test_a_tile_in_psum_that_begins_anew_has_another_bank() -> None:
    """Matmuls follow each other without a wait for the copies, in their order, until all eight banks are used."""
    run = nkitools.simulate(products, *(np.ones((128, n), np.float32) for n in (128, 512)), 12, chip="trn2")
    schedule = made(run).schedule
    matmuls, copies = named(run, "nc_matmul"), named(run, "tensor_copy")
    begins, ends = schedule.starts[matmuls], schedule.ends[copies]
    assert (np.diff(begins) > 0).all()
    assert (begins[1:8] < ends[:7]).all()  # no copy had ended
    assert (begins[8:] > ends[:4]).all()  # the bank's


@nki.jit
def activated(x: Any, functions: tuple[str, ...]) -> Any:
    """Return x after some activations."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for name in functions:
        nisa.activation(dst=tile, op=getattr(nl, name), data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


@pytest.mark.parametrize(
    ("functions", "loads"),
    [(("exp", "exp", "tanh", "tanh"), 1), (("exp", "tanh", "exp", "tanh"), 3), (("exp", "copy", "exp", "square"), 0)],
)
def test_another_function_loads_another_table(functions: tuple[str, ...], loads: int) -> None:
    """Each change of function takes 1,283 ns; the first table, and functions that are in all of them, take none."""
    law = profiled("gen3", "Scalar", "ACT_TABLE_LOAD", "")
    assert law is not None
    assert law.fixed_ns == TABLE_NS
    x = np.ones((128, 128), np.float32)
    longer, plain = (
        made(nkitools.simulate(activated, x, each, chip="trn2")).work.durations[1:-1]
        for each in (functions, ("exp",) * 4)
    )
    assert int(((longer - plain) > 0.9 * TABLE_NS).sum()) == loads
    run = nkitools.simulate(activated, x, functions, chip="trn1")
    assert max(timeline_of(run, GENERATIONS["trn1"], knobs_of(GENERATIONS["trn1"])).work.durations[1:-1]) < TABLE_NS
