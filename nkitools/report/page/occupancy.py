"""SBUF and PSUM over a run: when each tensor is alive, and a place for it.

`nkitools.history.liveness` has the lifetimes, as the capacity rules (NK202, NK203) count them. The compiler decides on
places, unless the author gave an address: here each tensor takes the lowest place that is free for its lifetime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from nkitools.facts.generations import Generation
from nkitools.history.liveness import Liveness
from nkitools.history.tiles_on_chip import Tiles, partition_bytes
from nkitools.record.columns import Columns, programs_at
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.record import Record
from nkitools.report.page.named import Named


class Life(NamedTuple):
    """The lifetime of a tensor on chip, from one position to another (inclusive), with its partitions and bytes."""

    storage: int
    begin: int
    end: int
    partition: int
    partitions: int
    byte: int
    nbytes: int
    placed: bool  # by the author


def lives_of(record: Record, columns: Columns, chip: Generation) -> dict[str, list[Life]]:
    """Return the lives of the tensors of SBUF and of PSUM, by when they begin."""
    found: dict[str, list[Life]] = {}
    accesses = Accesses(record, columns)
    addressed = Tiles.of_memories(record, chip, has_address=True)
    for memory, tiles in Tiles.of_memories(record, chip).items():
        lives = [*_lives(accesses, addressed[memory], chip), *_lives(accesses, tiles, chip)]
        free = sorted((each for each in lives if not each.placed), key=lambda each: each.begin)
        laid = [each for each in lives if each.placed]
        for own in _by_core(record, free).values():
            laid += _laid_out(own, chip)
        found[memory] = sorted(laid, key=lambda each: each.begin)
    return found


def _by_core(record: Record, lives: list[Life]) -> dict[tuple[int, ...], list[Life]]:
    """Every program has a core of its own."""
    found: dict[tuple[int, ...], list[Life]] = {}
    turns = programs_at(record, np.array([each.begin for each in lives], np.int64)).tolist()
    for life, turn in zip(lives, turns, strict=True):
        found.setdefault(record.programs[turn][1] if turn >= 0 else (), []).append(life)
    return found


def _lives(accesses: Accesses, tiles: Tiles, chip: Generation) -> Iterator[Life]:
    storages, begins, ends = Liveness(accesses, tiles).lives()
    for storage, begin, end in zip(storages.tolist(), begins.tolist(), ends.tolist(), strict=True):
        known = accesses.record.storages[storage]
        rows = min(known.shape[0], chip.partitions)
        place = known.has_address
        partition, byte = (known.start_partition, known.start_byte) if place else (0, 0)
        yield Life(storage, begin, end, partition, rows, byte, partition_bytes(known), place)


class _Taken(NamedTuple):
    """Bytes of some quarters of the partitions, until a position."""

    end: int
    first: int
    last: int
    byte: int
    stop: int


def _laid_out(lives: list[Life], chip: Generation) -> Iterator[Life]:
    """Yield each tensor at the lowest free byte; those with few partitions lie side by side."""
    step = chip.start_partition_step
    waiting: list[_Taken] = []
    for life in lives:
        while waiting and waiting[0].end < life.begin:
            heappop(waiting)
        quarters = -(-life.partitions // step)
        starts = range(0, chip.partitions // step, 1 if quarters == 1 else 2 if quarters == 2 else chip.partitions)
        byte, first = min((_lowest(waiting, start, start + quarters - 1, life.nbytes), start) for start in starts)
        heappush(waiting, _Taken(life.end, first, first + quarters - 1, byte, byte + life.nbytes))
        yield life._replace(partition=first * step, byte=byte)


def _lowest(taken: list[_Taken], first: int, last: int, nbytes: int) -> int:
    byte = 0
    beside = (each for each in taken if each.first <= last and first <= each.last)
    for each in sorted(beside, key=lambda each: each.byte):
        if each.byte - byte >= nbytes:
            break
        byte = max(byte, each.stop)
    return byte


def lives_in_page(
    columns: Sequence[Columns], bases: Sequence[int], named: Named, chip: Generation
) -> dict[str, list[tuple[int, ...]]]:
    """Return by memory the lives of all ranks, with the storages and the positions of the page."""
    lives: dict[str, list[tuple[int, ...]]] = {name: [] for name in capacities(chip)}
    for base, each in zip(bases, columns, strict=True):
        for name, found in lives_of(each.record, each, chip).items():
            lives[name] += [
                (named.storage(base, storage), base + begin, base + end, *place)
                for storage, begin, end, *place in found
            ]
    return lives


def capacities(chip: Generation) -> dict[str, dict[str, Any]]:
    """Return for SBUF and PSUM the partitions, the bytes of each, and the bytes that a kernel may use."""
    sbuf, psum = chip.sbuf_partition_bytes, chip.psum_partition_bytes
    return {
        "SBUF": {"partitions": chip.partitions, "bytes": sbuf, "usable": chip.sbuf_usable_bytes},
        "PSUM": {"partitions": chip.partitions, "bytes": psum, "usable": psum},
    }
