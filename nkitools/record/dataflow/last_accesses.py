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


class Writers(NamedTuple):
    """The last writers of the elements that each access touches, a place in these columns for each pair of both.

    ``accesses``: places in the columns of all accesses; ``positions``, ``kinds``: their instructions and kinds.
    ``sources``: the positions of the writers, `UNWRITTEN` where there is none.
    """

    accesses: Array
    positions: Array
    kinds: Array
    sources: Array


class Edges(NamedTuple):
    """Pairs of a later instruction and an earlier one."""

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
    targets, sources = zip(*edges, strict=True) if edges else ([np.zeros(0, np.int64)],) * 2
    return Edges(np.concatenate(targets), np.concatenate(sources))


def last_accesses(pieces: Pieces, views: Array, order: Array, positions: Array, kinds: Array) -> tuple[Writers, Edges]:
    """Return the writers of the pieces of each access, and the readers since then of the pieces that are overwritten.

    ``views``, ``positions``, ``kinds``: the view, the instruction and the kind of each access, sorted by position, and
    the reads of an instruction before its writes. ``order``: the accesses, those of a view together and in their order.
    An instruction that touches a piece twice may be among its own sources.
    """
    found = [_in_pieces(*each, positions, kinds) for each in _batches(pieces, views, order)]
    if len(found) == 1:
        return found[0]
    at, sources = joined([Edges(each.accesses, each.sources).distinct() for each, _ in found])
    return Writers(at, positions[at], kinds[at], sources), joined([each.distinct() for _, each in found])


def _batches(pieces: Pieces, views: Array, accesses: Array) -> Iterator[tuple[Array, Array]]:
    """Yield pieces with their accesses, sorted, so many at once that memory suffices; `last_accesses` has the rest."""
    if pieces.are_apart:
        yield views[accesses], accesses
        return
    lengths = (pieces.starts[1:] - pieces.starts[:-1])[views]
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
    bits = accesses.size.bit_length()
    pairs = np.sort((pieces << bits) | accesses)
    return pairs >> bits, pairs & ((1 << bits) - 1)


def _in_pieces(pieces: Array, accesses: Array, positions: Array, kinds: Array) -> tuple[Writers, Edges]:
    """Return what `last_accesses` does for some pieces, which are sorted, and their accesses, sorted in each piece."""
    positions, kinds, numbers = positions[accesses], kinds[accesses], np.arange(accesses.size)
    # The first of the accesses from the one behind the last that wrote all of the piece up to each access.
    # Twice its number, less 1 where one wrote the piece.
    behind = (kinds[:-1] & WRITES) != 0
    begins = pieces[1:] != pieces[:-1]
    since = numbers * 2
    since[1:] -= behind > begins
    since[1:] *= behind | begins
    np.maximum.accumulate(since, out=since)
    never = (since & 1) == 0
    since = (since + 1) >> 1
    sources = positions[since - 1]
    sources[never] = UNWRITTEN
    writers = Writers(accesses, positions, kinds, sources)
    may_write = (kinds & MAY_WRITE) != 0
    if may_write.any():
        at, which = _between(since, numbers, may_write)
        others = accesses[at], positions[at], kinds[at], positions[which]
        writers = Writers(*map(np.concatenate, zip(writers, others, strict=True)))
    writing = (kinds >= WRITES).nonzero()[0]
    at, which = _between(since[writing], writing, (kinds & (READS | ADDS)) != 0)
    return writers, Edges(positions[writing[at]], positions[which])


def _between(first: Array, last: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the wanted ones from each first to before each last: the pair of each, and its place."""
    upto = np.zeros(wanted.size + 1, np.int64)
    wanted.cumsum(out=upto[1:])
    low = upto[first]
    lengths = upto[last] - low
    return np.arange(lengths.size).repeat(lengths), wanted.nonzero()[0][ranges(low, lengths)]
