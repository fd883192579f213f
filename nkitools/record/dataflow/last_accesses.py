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

_BATCH = 1 << 17  # accesses to pieces that are looked at together: they stay in the cache


class Writers(NamedTuple):
    """The last writers of the elements that each access touches: columns, one entry for each pair of access and writer.

    ``accesses``: the accesses; ``positions``, ``kinds``: their instructions and kinds.
    ``sources``: the positions of the writers, `UNWRITTEN` if there is none.
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
    """Return the last writers of each access's pieces, and for overwritten pieces the readers since the last writer.

    ``views``, ``positions``, ``kinds``: the view, the instruction and the kind of each access, sorted by position, the
    reads of an instruction before its writes. ``order``: the accesses, sorted by view, then as they are.
    An instruction that touches a piece twice may be among its own sources.
    """
    if pieces.are_apart:
        return _in_pieces(views[order], order, positions, kinds)
    lengths = np.diff(pieces.starts)[views]
    if lengths.sum() <= _BATCH:
        return _in_pieces(*_sorted(*_pairs(pieces, views, lengths, 0), views.size), positions, kinds)
    found = list(_in_stretches(pieces, views, lengths, positions, kinds))
    at, sources = joined([Edges(each.accesses, each.sources) for each, _ in found])
    return Writers(at, positions[at], kinds[at], sources), joined([each for _, each in found])


def _in_stretches(
    pieces: Pieces, views: Array, lengths: Array, positions: Array, kinds: Array
) -> Iterator[tuple[Writers, Edges]]:
    """Yield the result of `last_accesses` for one stretch of the accesses after the other, to save memory.

    Each stretch also gets the earlier accesses that matter to it: `_Earlier`.
    """
    earlier, total, first = _Earlier(pieces, views, kinds), lengths.cumsum(), 0
    most = max(_BATCH, pieces.pieces.size)
    while first < views.size:
        before = int(total[first - 1]) if first else 0
        last = max(int(total.searchsorted(before + most, "right")), first + 1)
        touched, accesses = _sorted(*_pairs(pieces, views[first:last], lengths[first:last], first), views.size)
        before_it = earlier.of(touched, kinds[accesses], first)
        at, which = map(np.concatenate, zip(before_it, (touched, accesses), strict=True))
        writers, anti = _in_pieces(*_sorted(at, which, views.size), positions, kinds, first)
        found = Edges(writers.accesses, writers.sources).distinct()
        yield Writers(found.targets, positions[found.targets], kinds[found.targets], found.sources), anti.distinct()
        earlier.wrote(touched, accesses, kinds[accesses])
        first = last


class _Earlier:
    """The accesses before a stretch that matter to it: for each piece, its last writer and all later accesses.

    ``writers``: the last access that wrote each piece whole, -1 if none did.
    ``views``, ``starts``: the views of piece n are ``views[starts[n]:starts[n + 1]]``.
    ``keys``: all accesses, sorted by view, reads before writes.
    """

    def __init__(self, pieces: Pieces, views: Array, kinds: Array) -> None:
        self.writers = np.full(pieces.total, -1)
        count = pieces.starts.size - 1
        by_piece, self.views = _sorted(pieces.pieces, np.arange(count).repeat(np.diff(pieces.starts)), count)
        self.starts = by_piece.searchsorted(np.arange(pieces.total + 1))
        self._bits = views.size.bit_length()
        self._keys = np.sort(((views * 2 + (kinds >= WRITES)) << self._bits) | np.arange(views.size))

    def of(self, touched: Array, kinds: Array, first: int) -> tuple[Array, Array]:
        """Return pieces with accesses before ``first`` that a stretch depends on.

        ``touched``, ``kinds``: the pieces of the stretch's accesses, sorted, and the kinds of access. An earlier read
        matters only if the stretch writes the piece.
        """
        begins = np.flatnonzero(np.diff(touched, prepend=-1))
        pieces = touched[begins]
        is_written = np.bitwise_or.reduceat(kinds, begins) >= WRITES
        found = [self._since(pieces, 1, first), self._since(pieces[is_written], 0, first)]
        return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])

    def _since(self, pieces: Array, writes: int, first: int) -> tuple[Array, Array]:
        """Return pieces with the accesses since the last writer of each: the writes (``writes=1``) or the reads."""
        counts = self.starts[pieces + 1] - self.starts[pieces]
        groups = (self.views[ranges(self.starts[pieces], counts)] * 2 + writes) << self._bits
        pieces = pieces.repeat(counts)
        low = self._keys.searchsorted(groups + np.maximum(self.writers[pieces], 0))
        lengths = np.maximum(self._keys.searchsorted(groups + first) - low, 0)
        return pieces.repeat(lengths), self._keys[ranges(low, lengths)] & ((1 << self._bits) - 1)

    def wrote(self, pieces: Array, accesses: Array, kinds: Array) -> None:
        """Note the accesses of a stretch that have written all of a piece; they are sorted."""
        writes = (kinds & WRITES) != 0
        self.writers[pieces[writes]] = accesses[writes]  # the last of equal pieces stays


def _pairs(pieces: Pieces, views: Array, lengths: Array, first: int) -> tuple[Array, Array]:
    """Return the pieces of accesses, which have these views, with the accesses, which are counted from ``first``."""
    return pieces.pieces[ranges(pieces.starts[views], lengths)], np.arange(first, first + views.size).repeat(lengths)


def _sorted(pieces: Array, accesses: Array, count: int) -> tuple[Array, Array]:
    """Return pairs of pieces and accesses, which are less than ``count``, sorted."""
    bits = count.bit_length()
    pairs = np.sort((pieces << bits) | accesses)
    return pairs >> bits, pairs & ((1 << bits) - 1)


def _in_pieces(pieces: Array, accesses: Array, positions: Array, kinds: Array, first: int = 0) -> tuple[Writers, Edges]:
    """Return the result of `last_accesses` for sorted pieces and their accesses, sorted in each piece.

    ``first``: accesses before this one get no entries.
    """
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
    asked = numbers if not first else (accesses >= first).nonzero()[0]
    writers = Writers(accesses, positions, kinds, sources)
    if first:
        writers = Writers(*(each[asked] for each in writers))
    may_write = (kinds & MAY_WRITE) != 0
    if may_write.any():
        at, which = _between(since[asked], asked, may_write)
        at = asked[at]
        others = accesses[at], positions[at], kinds[at], positions[which]
        writers = Writers(*map(np.concatenate, zip(writers, others, strict=True)))
    writing = asked[kinds[asked] >= WRITES] if first else (kinds >= WRITES).nonzero()[0]
    at, which = _between(since[writing], writing, (kinds & (READS | ADDS)) != 0)
    return writers, Edges(positions[writing[at]], positions[which])


def _between(first: Array, last: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the wanted ones from each first to before each last: the pair of each, and its place."""
    upto = np.zeros(wanted.size + 1, np.int64)
    wanted.cumsum(out=upto[1:])
    low = upto[first]
    lengths = upto[last] - low
    return np.arange(lengths.size).repeat(lengths), wanted.nonzero()[0][ranges(low, lengths)]
