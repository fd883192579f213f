"""The reuse of memory on chip: a tile waits for the last reader of the tile that had its bytes before.

Tensors get bytes in the order of their first writes, as long as SBUF and PSUM have room. Then each tensor takes the
bytes of those whose last use is the longest ago. Tensors with an address stay where the author put them; the
dependences of the run have their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.columns import Columns
from nkitools.timing.repeated import mixed

_SPILLED = 8  # of a full memory the part that is made free at once


def reuse_edges(columns: Columns, chip: Generation, cores: Array, fresh: Array) -> tuple[Array, Array]:
    """Return pairs of instructions: the first write to a tile, and an access to the tile that had its bytes before.

    ``cores``: the core of each instruction, which has an SBUF and a PSUM of its own. ``fresh``: the positions of the
    instructions with which a tile begins anew, so that it may have other bytes from there on.
    """
    order = np.argsort(columns.storages, kind="stable")
    storages, positions = columns.storages[order], columns.positions[order]
    firsts = np.flatnonzero((np.diff(storages, prepend=-1) != 0) | np.isin(positions, fresh))
    lasts = np.append(firsts[1:], storages.size) - 1
    decides = ~_implied(columns, order, firsts)
    counts = np.concatenate(([0], np.cumsum(decides)))  # of the accesses that decide, before each
    tiles: dict[tuple[str, int], list[tuple[int, int, int, int, int]]] = {}
    for storage, begins, ends, first, last in zip(
        *(each.tolist() for each in (storages[firsts], positions[firsts], positions[lasts])),
        *(each.tolist() for each in (counts[firsts], counts[lasts + 1] - 1)),
        strict=True,
    ):
        known = columns.record.storages.get(storage)
        if known is not None and known.memory in ("SBUF", "PSUM") and not known.has_address and not known.is_given:
            place = known.memory, int(cores[begins])
            tiles.setdefault(place, []).append((begins, ends, first, last, known.partition_bytes))
    targets, sources, uses = list[int](), list[int](), positions[decides].tolist()
    for (memory, _), found in tiles.items():
        capacity = chip.sbuf_usable_bytes if memory == "SBUF" else chip.psum_partition_bytes
        for first, accesses in _rotated(sorted(found), uses, capacity):
            sources += accesses
            targets += [first] * len(accesses)
    return np.array(targets, np.int64), np.array(sources, np.int64)


def _implied(columns: Columns, accesses: Array, firsts: Array) -> Array:
    """Return for each access to tiles whether a later one of the same elements waits for it.

    ``firsts``: the places of each tile's first access among them. Who waits for the later one waits for both.
    """
    if not accesses.size:
        return np.zeros(0, np.bool_)
    tiles = np.repeat(np.arange(firsts.size), np.diff(firsts, append=accesses.size))
    keys = mixed(tiles, columns.layouts[accesses], columns.byte_offsets[accesses])
    order = np.argsort(keys, kind="stable")
    writes, places = columns.writes[accesses[order]], np.arange(order.size)
    begins = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    sizes = np.diff(begins, append=order.size)
    last_writes = np.repeat(np.maximum.reduceat(np.where(writes, places, -1), begins), sizes)
    found = np.empty(order.size, np.bool_)
    found[order] = places < np.where(writes, np.repeat(begins + sizes - 1, sizes), last_writes)
    return found


def _rotated(
    tiles: list[tuple[int, int, int, int, int]], positions: list[int], capacity: int
) -> Iterator[tuple[int, set[int]]]:
    """Yield the first use of a tile, and the uses of one whose bytes it takes, for each such pair of one memory.

    A tile is its first and last use, where its uses stand, and its bytes.

    Where more is alive than there is room for, some tiles are taken to be elsewhere: the last ones to be used again.
    """
    alive: list[tuple[int, int, int, int]] = []  # by their last use
    farthest: list[tuple[int, int, int]] = []  # the same by the greatest last use, with their first use and bytes
    spilled: set[int] = set()
    dead: deque[tuple[int, int, int]] = deque()  # those whose bytes are not taken again, by their last use
    room = capacity
    for begins, ends, first, last, nbytes in tiles:
        while alive and alive[0][0] < begins:
            _, one, other, size = heappop(alive)
            if one not in spilled:
                dead.append((one, other, size))
        while room < nbytes and dead:
            one, other, size = dead.popleft()
            room += size
            yield begins, set(positions[one : other + 1])
        if room < nbytes:
            while farthest and -farthest[0][0] >= begins and room < max(nbytes, capacity // _SPILLED):
                _, one, size = heappop(farthest)
                spilled.add(one)
                room += size
        room -= nbytes
        heappush(alive, (ends, first, last, nbytes))
        heappush(farthest, (-ends, first, nbytes))
