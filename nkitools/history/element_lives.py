"""The lives of tensors element by element: from each write to the last read of the written elements."""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.dataflow.last_accesses import ADDS, MAY_WRITE, READS, WRITES, last_accesses


def element_lives(accesses: Accesses, tiles: Array) -> tuple[Array, Array, Array]:
    """Return the lives of tiles: for each the tile, and the positions of its begin and end.

    A tile is alive while one of its elements is: lives of elements that touch or overlap are one life of the tile.
    ``tiles``: the number of each access's tile, -1 for accesses to other tensors.
    """
    writers, _ = last_accesses(accesses.pieces(), *accesses.views[-2:], accesses.positions, accesses.kinds)
    reads = ((writers.kinds & (READS | ADDS)) != 0) & (writers.sources >= 0)
    targets, begins = writers.accesses[reads], writers.sources[reads]
    # A tensor that is never read takes its place while it is written.
    writes = np.flatnonzero((accesses.kinds & (WRITES | MAY_WRITE)) != 0)
    owners = tiles[np.concatenate((targets, writes))]
    begins = np.concatenate((begins, accesses.positions[writes]))
    ends = accesses.positions[np.concatenate((targets, writes))]
    known = np.flatnonzero(owners >= 0)
    known = known[np.lexsort((begins[known], owners[known]))]
    return _joined(owners[known], begins[known], ends[known])


def _joined(owners: Array, begins: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Return ranges, sorted by owner and begin, with touching ranges of one owner joined."""
    if not owners.size:
        return owners, begins, ends
    room = int(ends.max()) + 2
    reached = np.maximum.accumulate(owners * room + ends)  # the end of one owner lies before all of the next
    firsts = np.ones(owners.size, np.bool_)
    firsts[1:] = owners[1:] * room + begins[1:] > reached[:-1]
    places = np.flatnonzero(firsts)
    return owners[places], begins[places], np.maximum.reduceat(ends, places)
