"""The last writers and readers of a piece of memory before each access: all pieces at once, with no loop over
accesses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkitools.chip.numerics import Array

# What an access does with its piece.
READS, ADDS, WRITES, MAY_WRITE = 1, 2, 4, 8

GIVEN, UNWRITTEN = -1, -2
"""Sources that are no instructions: an argument, memory that was never written."""


class Timeline(NamedTuple):
    """Accesses to pieces, sorted by piece and position.

    ``owners``: the operand of each access; ``positions``: its instruction; ``kinds``: reading or writing, see `READS`
    and so on; ``storages``: the storage of the accessed view; ``unwritten``: the source of unwritten elements.
    """

    pieces: Array
    owners: Array
    positions: Array
    kinds: Array
    storages: Array
    unwritten: Array


class Edges(NamedTuple):
    """Pairs of a later access or instruction and an earlier instruction."""

    targets: Array
    sources: Array


def edges_of(timeline: Timeline) -> tuple[Edges, Edges, Edges]:
    """Return which writers each owner reads from, and which writers and readers each instruction overwrites.

    A read that only adds to what was written (`ADDS`) reads nothing where nothing was written, or through another
    storage.
    """
    if not timeline.pieces.size:
        none = Edges(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return none, none, none
    turns = _Turns(timeline)
    return turns.flow(), turns.output(), turns.anti()


class _Turns:
    """The accesses of one instruction to one piece together: its reads come before its writes."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        pieces, positions = timeline.pieces, timeline.positions
        begins = np.ones(pieces.size, np.bool_)
        begins[1:] = (pieces[1:] != pieces[:-1]) | (positions[1:] != positions[:-1])
        firsts = np.flatnonzero(begins)
        self.turn = np.cumsum(begins) - 1  # of each access
        kinds = np.bitwise_or.reduceat(timeline.kinds, firsts)
        self.positions = positions[firsts]
        self.reads = (kinds & (READS | ADDS)) != 0
        self.writes = (kinds & WRITES) != 0
        self.may_write = ((kinds & MAY_WRITE) != 0) & ~self.writes
        begins_piece = np.ones(firsts.size, np.bool_)
        begins_piece[1:] = pieces[firsts[1:]] != pieces[firsts[:-1]]
        numbers = np.arange(firsts.size)
        first_of_piece = np.maximum.accumulate(np.where(begins_piece, numbers, 0))
        latest = np.maximum.accumulate(np.where(self.writes, numbers, -1))
        before = np.concatenate(([-1], latest[:-1]))
        self.has_writer = before >= first_of_piece
        # The turns from the last one that wrote all of the piece to the one before this one: behind `writer`.
        self.writer = np.where(self.has_writer, before, first_of_piece - 1)

    def flow(self) -> Edges:
        """Return for each reading access the writers of the elements that it reads."""
        timeline = self.timeline
        reading = np.flatnonzero(timeline.kinds & (READS | ADDS))
        turns, owners = self.turn[reading], timeline.owners[reading]
        only_adds = (timeline.kinds[reading] & READS) == 0
        known = self.has_writer[turns]
        sources = np.where(known, self.positions[self.writer[turns]], timeline.unwritten[reading])
        kept = known | ~only_adds | (timeline.unwritten[reading] == GIVEN)
        if only_adds.any():
            kept &= ~(only_adds & known & (self._storage_written()[self.writer[turns]] != timeline.storages[reading]))
        targets, found = self._between(turns, self.may_write)
        return Edges(
            np.concatenate((owners[kept], owners[targets])), np.concatenate((sources[kept], self.positions[found]))
        )

    def output(self) -> Edges:
        """Return for each writing instruction the writers of the elements that it overwrites."""
        writing = np.flatnonzero(self.writes | self.may_write)
        known = writing[self.has_writer[writing]]
        targets, found = self._between(writing, self.may_write)
        return Edges(
            np.concatenate((self.positions[known], self.positions[writing[targets]])),
            np.concatenate((self.positions[self.writer[known]], self.positions[found])),
        )

    def anti(self) -> Edges:
        """Return for each writing instruction the readers of the overwritten elements since their last write."""
        writing = np.flatnonzero(self.writes | self.may_write)
        targets, found = self._between(writing, self.reads)
        return Edges(self.positions[writing[targets]], self.positions[found])

    def _between(self, turns: Array, wanted: Array) -> tuple[Array, Array]:
        """Return for each turn all wanted ones between the last write before it and itself: which turn, and they."""
        upto = np.concatenate(([0], np.cumsum(wanted)))
        first, last = upto[self.writer[turns] + 1], upto[turns]
        lengths = last - first
        which = np.repeat(np.arange(turns.size), lengths)
        places = np.arange(which.size) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
        return which, np.flatnonzero(wanted)[places]

    def _storage_written(self) -> Array:
        """Return the storage through which each turn has written."""
        timeline = self.timeline
        found = np.full(self.positions.size, -1, np.int64)
        writing = np.flatnonzero(timeline.kinds & (WRITES | MAY_WRITE))
        found[self.turn[writing]] = timeline.storages[writing]
        return found
