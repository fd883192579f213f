"""Loads that the compiler of the legacy dialect leaves out: the elements are in SBUF since an earlier load.

It keeps what it has loaded as long as there is room, and loads again what has left: the tile that was used the longest
ago leaves first. A tile takes its bytes of a partition, so that one of half the partitions takes twice the room.
Published kernels show it: with tiles of 64 rows a matmul of 4096 x 2048 x 2048 does not fit and takes 11 times as long
as with 128, and a loop whose loads are moved out by hand is as fast as one whose loads are not. Loads of one tile for
as many results as PSUM has banks, or fewer, count once in any case: the results can be made beside each other.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.dependences import CompressedRows
from nkitools.timing.operations import Operations
from nkitools.timing.repeated import mixed, sums


def loaded_once(operations: Operations, flow: CompressedRows, base: int, chip: Generation) -> tuple[Array, Array]:
    """Return the positions of the loads that are left out, and for each the earlier load that has brought the same.

    ``base``: the position of the record's first instruction in ``flow``.
    """
    columns, loads = operations.columns, operations.loads
    if loads.size < 2:
        return loads[:0], loads[:0]
    firsts, storages = columns.first_operands[loads], columns.storages
    is_load = np.zeros(columns.plans.size, np.bool_)
    is_load[loads] = True
    stays = ~np.isin(storages[firsts], storages[columns.writes & ~is_load[columns.positions]])  # nothing else writes it
    loads, firsts = loads[stays], firsts[stays]
    sources = (each[firsts + 1] for each in (storages, columns.layouts, columns.byte_offsets))
    keys = mixed(*sources) ^ sums(mixed(flow.sources), flow.starts)[base + loads]
    sizes = [LAYOUTS[layout].free_bytes for layout in columns.layouts[firsts].tolist()]
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    sizes = np.where(counts[which.reshape(-1)] > chip.psum_banks, sizes, 0).tolist()
    kept: dict[int, tuple[int, int]] = {}  # the load and the bytes of each key, that used the longest ago first
    again, originals, room = list[int](), list[int](), chip.sbuf_automatic_bytes
    for position, key, size in zip(loads.tolist(), keys.tolist(), sizes, strict=True):
        found = kept.pop(key, None)
        if found is None:
            room -= size
            while room < 0 and kept:
                room += kept.pop(next(iter(kept)))[1]
            found = position, size
        else:
            again.append(position)
            originals.append(found[0])
        kept[key] = found
    return np.array(again, np.int64), np.array(originals, np.int64)
