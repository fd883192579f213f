"""Every way agrees also where programs wait for each other: barriers, exchanges, collectives, registers with ranks."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.careful import carefully
from tests.isa.gathered import place
from tests.issue.test_both_ways import TURNS, both, seen, watched

PAIR = ncc.ReplicaGroup([[0, 1]])
X = np.arange(48, dtype=np.float32).reshape(8, 6)
SWAP = [(0, 1), (1, 0)]


def check_ways(play: Callable[[], dict[str, Any]], name: str) -> dict[str, Any]:
    """Compare a run on the fast path, on the careful one, and on each where an observer looks on; return the first."""
    fast, careful = both(play)
    assert name in [each.name for each in fast["instructions"]]
    assert fast == careful
    assert fast == Context().run(watched, play)
    with carefully():
        assert fast == Context().run(watched, play)
    return fast


def _exchanged(call: Callable[..., Any], mine: Any, theirs: Any, **keywords: Any) -> None:
    other = 1 - nl.program_id(0)
    call(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, **keywords)


BETWEEN_CORES: dict[str, Callable[[Any, Any, Any, str], object]] = {
    "core_barrier": lambda mine, theirs, shared, name: nisa.core_barrier(shared, (0, 1), name=name),
    "sendrecv": lambda mine, theirs, shared, name: _exchanged(nisa.sendrecv, mine, theirs, pipe_id=0, name=name),
    "sendrecv_compute": lambda mine, theirs, shared, name: _exchanged(
        nisa.sendrecv_compute, mine, theirs, reduce_op=nl.add, name=name
    ),
}


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("name", BETWEEN_CORES)
def test_two_cores(name: str, is_written: bool) -> None:
    """The same results, rows, names and findings, also where half of what a core sends was never written."""

    def kernel(x: Any) -> Any:
        core = nl.program_id(0)
        out, shared = (nl.ndarray((2, 8, 6), x.dtype, buffer=nl.shared_hbm) for _ in range(2))
        for turn in range(TURNS):
            mine, theirs = nl.ndarray((8, 6), x.dtype), nl.ndarray((8, 6), x.dtype)
            nisa.memset(theirs, 0.0)
            rows = 8 if is_written else 4
            nisa.dma_copy(dst=mine[0:rows], src=x[0:rows])
            nisa.dma_copy(dst=shared[core, 0:rows], src=mine[0:rows])
            BETWEEN_CORES[name](mine, theirs, shared, f"turn_{turn}")
            source = shared[1 - core] if name == "core_barrier" else theirs
            nisa.dma_copy(dst=out[core], src=source)
        return out

    fast = check_ways(partial(seen, kernel, X, grid=2, nki_version="0.7"), name)
    assert bool({each.rule for each in fast["findings"]} & {"NK401", "NK405"}) is not is_written
    ((*_, latest),) = fast["labels"]
    assert latest[-1] == f"turn_{TURNS - 1}"


ON_RANKS: dict[str, Callable[[Any, Any, str], object]] = {
    "all_reduce": lambda src, dst, name: ncc.all_reduce([src], [dst], PAIR, nl.add, name=name),
    "all_gather": lambda src, dst, name: ncc.all_gather([src[0:4]], [dst], PAIR, 0, name=name),
    "reduce_scatter": lambda src, dst, name: ncc.reduce_scatter([src], [dst[0:4]], PAIR, 0, nl.add, name=name),
    "all_to_all": lambda src, dst, name: ncc.all_to_all([src], [dst], PAIR, 0, name=name),
    "collective_permute": lambda src, dst, name: ncc.collective_permute([src], [dst], SWAP, name=name),
    "collective_permute_implicit": lambda src, dst, name: ncc.collective_permute_implicit(
        [[src]], [[dst]], PAIR, name=name
    ),
    "collective_permute_implicit_reduce": lambda src, dst, name: ncc.collective_permute_implicit_reduce(
        [[src]], [[src]], [[dst]], PAIR, nl.add, name=name
    ),
    "collective_permute_implicit_current_processing_rank_id": lambda src, dst, name: (
        ncc.collective_permute_implicit_current_processing_rank_id(1, PAIR, name=name)
    ),
    "rank_id": lambda src, dst, name: ncc.rank_id(name=name),
}


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("grid", [1, 2])
@pytest.mark.parametrize("name", ON_RANKS)
def test_two_ranks(name: str, grid: int, is_written: bool) -> None:
    """The same on each rank, on one core and on two, also where a part of what it sends was never written."""

    def kernel(x: Any) -> Any:
        is_first = nl.program_id(0) == 0
        src, dst, out = (place(x.shape, x.dtype) for _ in range(3))
        rows = 8 if is_written else 2
        for turn in range(TURNS):
            if is_first:
                nisa.dma_copy(dst=src[0:rows], src=x[0:rows])
                nisa.dma_copy(dst=dst, src=x)
            ON_RANKS[name](src, dst, f"turn_{turn}")
            if is_first:
                nisa.dma_copy(dst=out, src=dst)
        return out

    fast = check_ways(partial(seen, kernel, (X,), (X + 1,), ranks=2, grid=grid), name)
    reads = name not in ("rank_id", "collective_permute_implicit_current_processing_rank_id")
    assert ("NK401" in {each.rule for each in fast["findings"]}) is (reads and not is_written)
    assert [labels[-1][-1] for labels in fast["labels"]] == [f"turn_{TURNS - 1}"] * 2
    assert [rank for rank in (0, 1) for each in fast["instructions"] if each.rank == rank and each.name == name] == [
        *(0,) * TURNS * grid,
        *(1,) * TURNS * grid,
    ]


@pytest.mark.parametrize("grid", [1, 2])
def test_what_a_rank_never_wrote_is_found_once(grid: int) -> None:
    """NK401 for each rank, not once more for the core for which the other one moves the data."""

    def kernel(x: Any) -> Any:
        src, dst = (place(x.shape, x.dtype) for _ in range(2))
        if nl.program_id(0) == 0:
            nisa.dma_copy(dst=src[0:2], src=x[0:2])
            nisa.dma_copy(dst=dst, src=x)
        ncc.all_gather([src[0:4]], [dst], PAIR, 0)
        return dst

    found = seen(kernel, (X,), (X + 1,), ranks=2, grid=grid)["findings"]
    assert [each.rule for each in found if each.rule == "NK401"] == ["NK401"] * 2


ONE_EACH = np.array([[1] * 4, [0, 1, 2, 3], [0] * 4], np.uint32)  # counts, places, received counts
FOUR = ncc.ReplicaGroup([[0, 1, 2, 3]])
OF_CHUNKS: dict[str, list[Callable[..., Any]]] = {
    "all_gather_v": [ncc.all_gather_v],
    "all_to_all_v": [ncc.all_to_all_v],
    "all_gather_v_trigger": [ncc.all_gather_v_prepare, ncc.all_gather_v_trigger],
    "all_to_all_v_trigger": [ncc.all_to_all_v_prepare, ncc.all_to_all_v_trigger],
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", OF_CHUNKS)
def test_chunks_of_data_dependent_sizes(name: str, known: bool) -> None:
    """The same on four ranks of two cores, at once or prepared and triggered later."""

    def kernel(x: Any, table: Any) -> Any:
        is_first = nl.program_id(0) == 0
        dst, metadata = place(x.shape, x.dtype), place(table.shape, table.dtype)
        for _ in range(TURNS):
            if is_first:
                nisa.dma_copy(dst=dst, src=x)
                nisa.dma_copy(dst=metadata, src=table)
            begin, *end = OF_CHUNKS[name]
            begun = begin([x], [dst], FOUR, metadata, recv_counts_known=known)
            for each in end:
                each(begun)
        return dst

    arguments = [(np.arange(8, dtype=np.float32) + rank, ONE_EACH) for rank in range(4)]
    check_ways(partial(seen, kernel, *arguments, ranks=4, grid=2, chip="trn3", nki_version="0.7"), name)


@pytest.mark.parametrize("name", ["all_reduce", "collective_permute_implicit_reduce", "reduce_scatter"])
def test_two_cores_say_once_where_an_infinity_comes_from(name: str) -> None:
    """Sums beyond float32 on two ranks of two cores: one finding of each rank, by the core that moves the data."""

    def kernel(x: Any) -> Any:
        src, dst, out = (place(x.shape, x.dtype) for _ in range(3))
        if nl.program_id(0) == 0:
            nisa.dma_copy(dst=src, src=x)
            nisa.dma_copy(dst=dst, src=x)
        ON_RANKS[name](src, dst, "turn_0")
        if nl.program_id(0) == 0:
            nisa.dma_copy(dst=out, src=dst)
        return out

    large = np.full_like(X, 3e38)
    run = nkitools.simulate(kernel, (large,), (large,), ranks=2, grid=2, rules="report")
    found = [each for each in run.findings if each.rule == "NK404"]
    assert {each.message.partition(":")[0] for each in found} == {name}
    assert np.isinf(run.outputs[0]).any()
