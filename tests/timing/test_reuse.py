"""The bytes that tiles take one after the other: who waits for whom, by kernels of three tiles, worked out by hand."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

import nkitools
from nkitools.facts.generations import GENERATIONS
from nkitools.record.run import Run
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import timeline_of

TRN2 = GENERATIONS["trn2"]
THIRD = TRN2.sbuf_usable_bytes // 3 // 4  # float32 numbers of a partition


def waits_for(run: Run, position: int) -> set[int]:
    """Return the instructions that one waits for."""
    work = timeline_of(run, TRN2, knobs_of(TRN2)).work
    return set(work.sources[work.targets == position].tolist())


@nki.jit
def stored_in_another_order(x: Any) -> Any:
    """Load three tiles that fill SBUF, store the last one first, and then load one of twice their size."""
    out = nl.ndarray((128, 5 * THIRD), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, THIRD), dtype=x.dtype, buffer=nl.sbuf) for _ in range(3)]
    for at in range(3):
        nisa.dma_copy(dst=tiles[at], src=x[:, at * THIRD : (at + 1) * THIRD])
    for at in (2, 0, 1):
        nisa.dma_copy(dst=out[:, at * THIRD : (at + 1) * THIRD], src=tiles[at])
    wide = nl.ndarray((128, 2 * THIRD), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=x[:, 0 : 2 * THIRD])
    nisa.dma_copy(dst=out[:, 3 * THIRD : 5 * THIRD], src=wide)
    return out


def test_a_tile_takes_bytes_side_by_side() -> None:
    """The wide tile lies where the first two were, whose bytes are neighbours, though those of the third are free."""
    run = nkitools.simulate(stored_in_another_order, np.ones((128, 3 * THIRD), np.float32), chip="trn2")
    third, first, second, wide = 3, 4, 5, 6
    assert {first, second} <= waits_for(run, wide)
    assert third not in waits_for(run, wide)


@nki.jit
def filled_early(x: Any) -> Any:
    """Fill a tile of two thirds of SBUF, which is used when another one of that size has been stored."""
    out = nl.ndarray((128, 4 * THIRD), dtype=x.dtype, buffer=nl.shared_hbm)
    early = nl.ndarray((128, 2 * THIRD), dtype=x.dtype, buffer=nl.sbuf)
    other = nl.ndarray((128, 2 * THIRD), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=early, value=1.0)
    nisa.dma_copy(dst=other, src=x)
    nisa.dma_copy(dst=out[:, 0 : 2 * THIRD], src=other)
    nisa.dma_copy(dst=out[:, 2 * THIRD : 4 * THIRD], src=early)
    return out


def test_a_tile_takes_its_bytes_when_it_is_first_used() -> None:
    """A memset stands before the first use, and waits for what the other tile's bytes are needed for."""
    run = nkitools.simulate(filled_early, np.ones((128, 2 * THIRD), np.float32), chip="trn2")
    memset, store = 0, 2
    assert store in waits_for(run, memset)


@nki.jit
def read_by_columns(x: Any, reads: int) -> Any:
    """Store a tile that fills SBUF column by column, and then two small ones."""
    out = nl.ndarray((128, reads + 32), dtype=x.dtype, buffer=nl.shared_hbm)
    wide = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=x)
    for n in range(reads):
        nisa.dma_copy(dst=out[:, n : n + 1], src=wide[:, n : n + 1])
    for n in range(2):
        small = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=small, src=x[:, n * 16 : (n + 1) * 16])
        nisa.dma_copy(dst=out[:, reads + n * 16 : reads + (n + 1) * 16], src=small)
    return out


def test_of_many_uses_one_tile_waits_for_all_and_the_next_for_that_one() -> None:
    """Both small tiles wait for all columns; the second one by the first one where there are many."""
    for reads, waits in ((1000, 1000), (1100, 1)):
        run = nkitools.simulate(read_by_columns, np.ones((128, 3 * THIRD - 8), np.float32), reads, chip="trn2")
        first, second = reads + 1, reads + 3
        columns = set(range(1, reads + 1))
        assert columns <= waits_for(run, first)
        assert waits_for(run, second) & (columns | {first}) == (columns if waits > 1 else {first})
