"""The last writers and readers of each piece of memory before each access: all pieces at once, with no loop over
accesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.pieces import Pieces, ranges

# What an access does with its piece.
READS, ADDS, WRITES, MAY_WRITE = 1, 2, 4, 8

GIVEN, UNWRITTEN = -1, -2
"""Sources that are no instructions: an argument, memory that was never written."""

_BATCH = 1 << 20  # accesses to pieces that are looked at together


class Edges(NamedTuple):
    """Pairs of a later access or instruction and an earlier instruction."""

    targets: Array
    sources: Array

    def distinct(self) -> Edges:
        """Return each edge once, sorted by target and source."""
        bits = int(self.sources.max(initial=0) - UNWRITTEN).bit_length()
        pairs = np.sort((self.targets << bits) | (self.sources - UNWRITTEN))  # twice as fast as np.unique, which hashes
        distinct = np.ones(pairs.size, np.bool_)
        np.not_equal(pairs[1:], pairs[:-1], out=distinct[1:])
        pairs = pairs[distinct]
        return Edges(pairs >> bits, (pairs & ((1 << bits) - 1)) + UNWRITTEN)


def joined(edges: Sequence[Edges]) -> Edges:
    """Return all of some edges."""
    if len(edges) == 1:
        return edges[0]
    none = np.zeros(0, np.int64)
    return Edges(*(np.concatenate((none, *(each[at] for each in edges))) for at in (0, 1)))


def last_accesses(pieces: Pieces, views: Array, order: Array, positions: Array, kinds: Array) -> tuple[Edges, Edges]:
    """Return the writers of the pieces of each access, and the readers since then of the pieces that it overwrites.

    ``views``, ``positions``, ``kinds``: the view, the instruction and the kind of each access, sorted by position, and
    the reads of an instruction before its writes. ``order``: the accesses, those of a view together and in their order.
    The targets are accesses, by their places in these columns. An instruction that touches a piece twice may be among
    its own sources.
    """
    found = [_in_pieces(*each, positions, kinds) for each in _batches(pieces, views, order)]
    if len(found) == 1:
        return found[0]
    return joined([each[0].distinct() for each in found]), joined([each[1].distinct() for each in found])


def _batches(pieces: Pieces, views: Array, accesses: Array) -> Iterator[tuple[Array, Array]]:
    """Yield pieces with their accesses, sorted, so many at once that memory suffices; `last_accesses` has the rest."""
    if pieces.are_apart:
        yield views[accesses], accesses
        return
    lengths = np.diff(pieces.starts)[views]
    if lengths.sum() <= _BATCH:
        yield _sorted(pieces.pieces[ranges(pieces.starts[views], lengths)], np.arange(views.size).repeat(lengths))
        return
    counts = np.bincount(views, minlength=pieces.starts.size - 1)
    firsts = np.cumsum(counts) - counts
    owners = np.repeat(np.arange(counts.size), np.diff(pieces.starts))  # the view of each piece of a view
    by_piece = np.argsort(pieces.pieces, kind="stable")
    sizes = counts[owners[by_piece]]
    total, first = np.cumsum(sizes), 0
    while first < by_piece.size:
        # No piece is cut through.
        before = int(total[first - 1]) if first else 0
        last = max(int(np.searchsorted(total, before + _BATCH, "right")), first + 1)
        last = int(np.searchsorted(pieces.pieces, pieces.pieces[by_piece[last - 1]], "right", by_piece))
        mine, lengths = by_piece[first:last], sizes[first:last]
        yield _sorted(np.repeat(pieces.pieces[mine], lengths), accesses[ranges(firsts[owners[mine]], lengths)])
        first = last


def _sorted(pieces: Array, accesses: Array) -> tuple[Array, Array]:
    room = int(accesses.max(initial=0)) + 1
    return np.divmod(np.sort(pieces * room + accesses), room)


def _in_pieces(pieces: Array, accesses: Array, positions: Array, kinds: Array) -> tuple[Edges, Edges]:
    """Return what `last_accesses` does for some pieces, which are sorted, and their accesses, sorted in each piece."""
    kinds, numbers = kinds[accesses], np.arange(accesses.size)
    begins = np.ones(accesses.size, np.bool_)
    np.not_equal(pieces[1:], pieces[:-1], out=begins[1:])
    first = np.maximum.accumulate(numbers * begins)
    latest = np.maximum.accumulate(np.where(kinds & WRITES, numbers, -1))
    # The accesses from the last one that wrote all of the piece up to each access: behind `before`.
    before = np.empty_like(latest)
    before[:1], before[1:] = -1, latest[:-1]
    found = positions[accesses]
    writers = [Edges(accesses, np.where(before < first, UNWRITTEN, found[before]))]
    since = np.maximum(before + 1, first)
    if (kinds & MAY_WRITE).any():
        targets, sources = _between(since, numbers, (kinds & MAY_WRITE) != 0)
        writers.append(Edges(accesses[targets], found[sources]))
    writing = (kinds >= WRITES).nonzero()[0]
    targets, sources = _between(since[writing], writing, (kinds & (READS | ADDS)) != 0)
    return joined(writers), Edges(accesses[writing[targets]], found[sources])


def _between(first: Array, last: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the wanted ones from each first to before each last: the pair of each, and its place."""
    upto = np.zeros(wanted.size + 1, np.int64)
    wanted.cumsum(out=upto[1:])
    low = upto[first]
    lengths = upto[last] - low
    return np.arange(lengths.size).repeat(lengths), wanted.nonzero()[0][ranges(low, lengths)]
