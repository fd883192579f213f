"""Which tiles are alive when: against the definition, looked at instruction by instruction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts.generations import generation_of
from nkitools.history.liveness import Liveness
from nkitools.history.tiles_on_chip import Tiles
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from tests.cases import cases

CHIP = generation_of("trn2")
SHAPES = ((1, 8), (32, 24), (33, 8), (64, 16), (65, 8), (96, 4), (128, 8), (128, 24))

# What a step does to the tiles of these numbers, which are made with the shape that stands at their place in SHAPES.
TILE = st.integers(0, 2 * len(SHAPES) - 1)
STEP = st.tuples(st.sampled_from(["fill", "fill half", "copy", "add in place", "make again"]), TILE)


def liveness_of(run: Any) -> Liveness:
    """Return the lives of the tiles in SBUF."""
    return Liveness(Accesses(run.record, Columns(run.record)), Tiles.of_memories(run.record, CHIP)["SBUF"])


def shape_of(number: int) -> tuple[int, int]:
    return SHAPES[number % len(SHAPES)]


def twin(number: int) -> int:
    """The other tile of the same shape."""
    return (number + len(SHAPES)) % (2 * len(SHAPES))


def played(steps: list[tuple[str, int]]) -> None:
    tiles = {number: nl.ndarray(shape_of(number), nl.float32, buffer=nl.sbuf) for number in range(2 * len(SHAPES))}
    for what, number in steps:
        tile = tiles[number]
        if what == "make again":
            tiles[number] = nl.ndarray(shape_of(number), nl.float32, buffer=nl.sbuf)
        elif what == "fill":
            nisa.memset(tile, 1.0)
        elif what == "fill half":
            nisa.memset(tile[:, 0 : shape_of(number)[1] // 2], 1.0)
        elif what == "copy":
            nisa.tensor_copy(dst=tile, src=tiles[twin(number)])
        else:
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)


def accesses(steps: list[tuple[str, int]]) -> dict[tuple[int, int], list[tuple[int, bool, bool, bool]]]:
    """Of each tile (by number and how often it was made) the instructions: which, read, written, all overwritten."""
    made = dict.fromkeys(range(2 * len(SHAPES)), 0)
    found: dict[tuple[int, int], list[tuple[int, bool, bool, bool]]] = {}
    position = 0
    for what, number in steps:
        if what == "make again":
            made[number] += 1
            continue
        own = found.setdefault((number, made[number]), [])
        if what == "copy":
            other = twin(number)
            found.setdefault((other, made[other]), []).append((position, True, False, False))
        reads = what == "add in place"
        own.append((position, reads, True, what in ("fill", "copy")))
        position += 1
    return found


def alive(history: list[tuple[int, bool, bool, bool]], position: int) -> bool:
    """Whether a value that is there at the instruction, or comes to be, is read there or later; or is written there."""
    if any(at == position for at, *_ in history):
        begins = [at for at, _, _, all_of_it in history if all_of_it and at <= position]
        start = max([history[0][0], *begins])
        reads = [at for at, reads, _, _ in history if reads and at >= start]
        ends = min((at for at, _, _, all_of_it in history if all_of_it and at > start), default=math.inf)
        last = max((at for at in reads if at <= ends), default=start)
        return start <= position <= max(start, last)
    before = [each for each in history if each[0] < position]
    after = [each for each in history if each[0] > position]
    for _, reads, _, all_of_it in after:
        if reads:
            return bool(before)
        if all_of_it:
            return False
    return False


def quarters(partitions: int) -> int:
    """The quarters of the partitions that a tile which begins at partition 0 reaches into."""
    return len({partition // 32 for partition in range(partitions)})


@settings(max_examples=cases(5000))
@given(st.lists(STEP, max_size=14))
def test_the_peak_is_that_of_the_definition(steps: list[tuple[str, int]]) -> None:
    """Full and partial writes, in-place instructions, tiles made anew, tiles of few partitions."""
    with nkitools.allow_findings("NK401", reason="tiles are read in any order"):
        run = nkitools.simulate(played, steps, rules="report")
    liveness = liveness_of(run)
    histories = accesses(steps)
    needs = []
    for position in range(len(run.instructions)):
        areas = [
            shape_of(number)[1] * 4 * quarters(shape_of(number)[0])
            for (number, _), history in histories.items()
            if alive(history, position)
        ]
        needs.append(sum(areas))
    peaks = list(liveness.peaks())
    if not needs:
        assert peaks == []
        return
    (peak,) = peaks
    largest = max((run.record.storages[storage].shape[1] * 4 for storage, _ in peak.tensors), default=0)
    assert peak.nbytes == max(-(-max(needs) // 4), largest)
    assert peak.position == int(np.argmax(needs))


@settings(max_examples=cases(5000))
@given(st.lists(STEP, max_size=14))
def test_lives_by_element_are_those_of_the_definition(steps: list[tuple[str, int]]) -> None:
    """A tile is alive at an instruction if one of its halves is written there, or holds a value that is read yet."""
    with nkitools.allow_findings("NK401", reason="tiles are read in any order"):
        run = nkitools.simulate(played, steps, rules="report")
    needs, halves = list[int](), {}
    for (number, made), history in accesses(steps).items():
        for half in range(2):
            own = [(at, reads, writes and (half == 0 or whole or reads)) for at, reads, writes, whole in history]
            halves[number, made, half] = [each for each in own if each[1] or each[2]]
    for position in range(len(run.instructions)):
        there = {tile[:2] for tile, history in halves.items() if _holds(history, position)}
        needs.append(sum(shape_of(number)[1] * 4 * quarters(shape_of(number)[0]) for number, _ in there))
    peaks = list(liveness_of(run).peaks(by_element=True))
    if not any(needs):
        assert peaks == []
        return
    (peak,) = peaks
    largest = max(run.record.storages[storage].shape[1] * 4 for storage, _ in peak.tensors)
    assert peak.nbytes == max(-(-max(needs) // 4), largest)
    assert peak.position == int(np.argmax(needs))


def _holds(history: list[tuple[int, bool, bool]], position: int) -> bool:
    """Whether elements with these accesses (where, read, written) hold a value at the instruction that is read yet."""
    if any(at == position and writes for at, _, writes in history):
        return True
    if not any(at < position and writes for at, _, writes in history):
        return False
    later = [(reads, writes) for at, reads, writes in history if at >= position]
    return bool(later) and later[0][0]


def test_a_tile_that_is_filled_part_by_part_makes_room() -> None:
    """From the last read of its earlier halves to the first of the next ones another tile may lie in its place."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 128, 32), x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 32), x.dtype, buffer=nl.sbuf)
        for turn in range(4):
            nisa.dma_copy(dst=tile[:, 0:16], src=x)
            nisa.dma_copy(dst=tile[:, 16:32], src=x)
            nisa.dma_copy(dst=out[turn], src=tile)
            other = nl.ndarray((128, 24), x.dtype, buffer=nl.sbuf)
            nisa.memset(other, 1.0)
            nisa.dma_copy(dst=out[turn, :, 0:24], src=other)
        return out

    liveness = liveness_of(nkitools.simulate(kernel, np.ones((128, 16), np.float32)))
    assert [each.nbytes for each in liveness.peaks()] == [56 * 4]
    assert [each.nbytes for each in liveness.peaks(by_element=True)] == [32 * 4]
    assert [each.nbytes for each in liveness.exceeding(31 * 4)] == [32 * 4]
    assert liveness.exceeding(32 * 4) == []


def test_what_is_not_read_any_more_makes_room() -> None:
    """References that Python keeps do not keep a tile alive."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = []
        for _ in range(10):
            tiles.append(nl.load(x))
            nisa.dma_copy(dst=out, src=tiles[-1])
        return out

    run = nkitools.simulate(kernel, np.ones((128, 16), np.float32))
    (peak,) = liveness_of(run).peaks()
    assert peak.nbytes == 16 * 4


def test_a_tile_is_alive_until_it_is_an_index() -> None:
    """Also where no instruction reads it as an operand: its life ends at the gather that it chooses the rows of."""

    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((3, 16), x.dtype, buffer=nl.shared_hbm)
        index = nl.load(rows)
        between = nl.load(x[0:3, :])
        nl.store(out, nl.add(between, between))
        nisa.dma_copy(dst=out, src=x.vector_select(0, index))
        return out

    run = nkitools.simulate(kernel, np.ones((128, 16), np.float32), np.array([[5], [3], [9]], np.int32))
    storages, begins, ends = liveness_of(run).lives()
    (index,) = np.flatnonzero([run.record.name_of(storage) == "index" for storage in storages.tolist()])
    assert (begins[index], ends[index]) == (0, len(run.instructions) - 1)
