"""The reuse of memory on chip: a tile waits for the last reader of the tile that had its bytes before.

Tensors get bytes side by side in the order of their first writes, and from the first byte again behind the last one,
where no other tensor needs its bytes any more. Tensors with an address stay where the author put them; the dependences
of the run have their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.columns import Columns
from nkitools.timing.repeated import mixed

_MANY = 1024  # uses of a tile


def reuse_edges(columns: Columns, chip: Generation, cores: Array, fresh: Array, late: Array) -> tuple[Array, Array]:
    """Return pairs of instructions: the first write to a tile, and an access to the tile that had its bytes before.

    ``cores``: the core of each instruction, which has an SBUF and a PSUM of its own. ``fresh``: the positions of the
    instructions with which a tile begins anew, so that it may have other bytes from there on. ``late``: those that
    the compiler moves to the next use of their tile, which needs its bytes from there on.
    """
    order = np.argsort(columns.storages, kind="stable")
    storages, positions = columns.storages[order], columns.positions[order]
    begins = np.diff(storages, prepend=-1) != 0
    if fresh.size:
        begins |= np.isin(positions, fresh)
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], storages.size) - 1
    writes = positions[firsts]
    needed = positions[np.where(np.isin(writes, late), np.minimum(firsts + 1, lasts), firsts)] if late.size else writes
    decides = ~_implied(columns, order, firsts)
    decides[1:] &= (np.diff(positions) != 0) | begins[1:] | ~decides[:-1]  # an instruction decides once
    counts = np.concatenate(([0], np.cumsum(decides)))  # of the accesses that decide, before each
    capacities = {"SBUF": chip.sbuf_usable_bytes, "PSUM": chip.psum_partition_bytes}
    tiles: dict[tuple[str, int], list[tuple[int, ...]]] = defaultdict(list)
    rows = needed, positions[lasts], counts[firsts], counts[lasts + 1], writes
    for storage, core, *row in zip(
        storages[firsts].tolist(), cores[writes].tolist(), *map(np.ndarray.tolist, rows), strict=True
    ):
        known = columns.record.storages.get(storage)
        if known is not None and known.memory in capacities and not known.has_address and not known.is_given:
            tiles[known.memory, core].append((*row, known.partition_bytes))
    waits = [each for (memory, _), found in tiles.items() for each in _placed(sorted(found), capacities[memory])]
    waiting, begin, end = np.array(waits, np.int64).reshape(-1, 3).T
    sizes = end - begin
    uses = np.repeat(end - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
    sources = np.where(uses < 0, -1 - uses, positions[decides][np.maximum(uses, 0)])
    return np.repeat(waiting, sizes), sources


def _implied(columns: Columns, accesses: Array, firsts: Array) -> Array:
    """Return for each access to tiles whether a later one of the same elements waits for it.

    ``firsts``: the places of each tile's first access among them. Who waits for the later one waits for both.
    """
    if not accesses.size:
        return np.zeros(0, np.bool_)
    tiles = np.repeat(np.arange(firsts.size), np.diff(firsts, append=accesses.size))
    keys = mixed(columns.layouts[accesses], columns.byte_offsets[accesses])
    keys = (tiles.astype(np.uint64) << np.uint64(32)) | (keys >> np.uint64(32))  # nearly sorted, which is sorted sooner
    order = np.argsort(keys, kind="stable")
    writes, places = columns.writes[accesses[order]], np.arange(order.size)
    begins = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
    sizes = np.diff(begins, append=order.size)
    last_writes = np.repeat(np.maximum.reduceat(np.where(writes, places, -1), begins), sizes)
    found = np.empty(order.size, np.bool_)
    found[order] = places < np.where(writes, np.repeat(begins + sizes - 1, sizes), last_writes)
    return found


def _placed(tiles: list[tuple[int, ...]], capacity: int) -> Iterator[tuple[int, int, int]]:
    """Yield the first write to a tile, and where the uses of one stand whose bytes it takes, for each pair of a memory.

    A tile is when it is first and last needed, where its uses begin and end, its first write, and its bytes. It takes
    the next bytes side by side that no tile needs any more, behind those of the tile before. What finds none waits for
    nothing. Of a tile with many uses the first one on its bytes waits for all, and the next ones for that one's write,
    which stands as a negative number.
    """
    places = [(capacity, -1, 0, 0)]  # pieces of the memory by their bytes: how many, last needed when, by which uses
    begin = 0
    for needed, ends, first, last, write, nbytes in tiles:
        low = high = begin
        room, left = 0, 2 * len(places)
        while room < nbytes and left:
            left -= 1
            if high == len(places):
                low = high = room = 0
            piece = places[high]
            high += 1
            if piece[1] < needed:
                room += piece[0]
            else:
                low, room = high, 0
        if room < nbytes or not nbytes:
            continue
        for _, until, one, other in places[low:high]:
            if until >= 0:
                yield write, one, other
        _, until, one, other = piece
        if other - one > _MANY:
            one, other = -1 - write, -write
        more = [(room - nbytes, until, one, other)] if room > nbytes else []
        places[low:high] = [(nbytes, ends, first, last), *more]
        begin = low + 1
