"""A memory cut into pieces: bytes that every access touches all together, or not at all.

What is asked of elements, who wrote them last, is then asked of pieces: mostly one or a few for each view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part
from nkitools.record.dataflow.elements import Box, Forms, Runs

_MOST_CELLS = 64  # of a grid, for each view: what is looked at one by one


class View(NamedTuple):
    """The elements that an access touches: a view, its first byte, and a choice of its elements (None: all)."""

    layout: Layout
    byte: int
    part: Part | None


class Pieces(NamedTuple):
    """The pieces of some views of one memory: those of view n are ``pieces[starts[n]:starts[n + 1]]``."""

    starts: Array
    pieces: Array
    total: int

    def by_view(self, views: Iterable[View]) -> dict[View, Array]:
        """Return the pieces of each view; ``views``: all of them, in their order."""
        return dict(zip(views, np.split(self.pieces, self.starts[1:-1]), strict=True))


def pieces_of(views: Sequence[View], pitches: Sequence[int], forms: Forms) -> Pieces:
    """Return the pieces that some distinct views of a memory are made of; ``pitches``: rows that it may be cut into."""
    _, boxes = boxes_of(views, pitches, forms)
    return _of_plain(boxes) or _cut(boxes)


def boxes_of(views: Sequence[View], pitches: Sequence[int], forms: Forms) -> tuple[int, list[list[Box]]]:
    """Return the first length of rows by which all views are boxes, and the boxes of each view."""
    for pitch in pitches:
        boxes = [forms.boxes(each.layout, each.part, each.byte, pitch) for each in views]
        known = [each for each in boxes if each is not None]
        if len(known) == len(boxes):
            return pitch, known
    raise ValueError("the last pitch takes every view")


def _of_plain(boxes: Sequence[Sequence[Box]]) -> Pieces | None:
    """Return the pieces of views that are one plain box each; None where they are not, or where they are too many.

    The edges of all boxes make a grid. Cells of it that the same views hold are one piece.
    """
    if not all(len(each) == 1 and each[0].is_plain for each in boxes):
        return None
    sides = [each[0].sides for each in boxes]
    row_at, column_at = (
        {edge: at for at, edge in enumerate(sorted({edge for each in sides for edge in each[axis]}))} for axis in (0, 1)
    )
    places = [(row_at[r], row_at[end], column_at[c], column_at[last]) for (r, end), (c, last) in sides]
    if sum((end - row) * (last - column) for row, end, column, last in places) > _MOST_CELLS * len(places):
        return None
    owners: dict[tuple[int, int], list[int]] = {}
    for number, (row, end, column, last) in enumerate(places):
        for cell in product(range(row, end), range(column, last)):
            owners.setdefault(cell, []).append(number)
    pieces = {mine: at for at, mine in enumerate(dict.fromkeys(map(tuple, owners.values())))}
    found: list[list[int]] = [[] for _ in places]
    for mine, piece in pieces.items():
        for number in mine:
            found[number].append(piece)
    starts = np.cumsum([0, *map(len, found)])
    return Pieces(starts, np.array(list(chain.from_iterable(found)), np.int64), len(pieces))


def _cut(boxes: Sequence[Sequence[Box]]) -> Pieces:
    """Return the pieces of views that may overlap in any way.

    Rows fall into classes of those that the same boxes hold, and so do the bytes of a row. A box is then some classes
    of rows by some classes of bytes: cells. Cells that the same views hold are one piece.
    """
    flat = [(number, box) for number, each in enumerate(boxes) for box in each]
    owners = np.array([number for number, _ in flat], np.int64)
    rows = _classes([(box.rows, box.row) for _, box in flat])
    columns = _classes([(box.columns, box.column) for _, box in flat])
    height, width = np.diff(rows.starts), np.diff(columns.starts)
    counts = height * width
    box = np.repeat(np.arange(len(flat)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    down, across = np.divmod(within, width[box])
    row, column = rows.pieces[rows.starts[box] + down], columns.pieces[columns.starts[box] + across]
    cells = row * max(1, columns.total) + column
    pairs = np.unique(owners[box] * max(1, rows.total * columns.total) + cells)
    return _merged(*np.divmod(pairs, max(1, rows.total * columns.total)), len(boxes))


def _merged(owners: Array, parts: Array, count: int) -> Pieces:
    """Return pieces with distinct sets of owners. The pairs are distinct and sorted by owner."""
    _, dense = np.unique(parts, return_inverse=True)
    size = int(dense.max()) + 1 if dense.size else 0
    seed = 0
    while True:
        signs = np.zeros(size, np.uint64)
        np.bitwise_xor.at(signs, dense, _signs(count, seed)[owners])
        _, piece = np.unique(signs, return_inverse=True)
        found = piece.reshape(-1)[dense]
        pieces = int(piece.max()) + 1 if piece.size else 0
        pairs, sizes = np.unique(owners * max(1, pieces) + found, return_counts=True)
        first, second = np.divmod(pairs, max(1, pieces))
        # A piece is in a view as a whole; where two signs were equal by accident it is not.
        if (np.bincount(piece.reshape(-1), minlength=pieces)[second] == sizes).all():
            return Pieces(np.searchsorted(first, np.arange(count + 1)), second, pieces)
        seed += 1


def _signs(count: int, seed: int) -> Array:
    """Return a number for each of some sets; the exclusive or of several numbers identifies the sets."""
    signs = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 40)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        signs = (signs ^ (signs >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(signs ^ (signs >> np.uint64(31)))


def _classes(sets: Sequence[tuple[Runs, int]]) -> Pieces:
    """Return the classes of numbers that the same sets hold, each set being runs moved by a number."""
    keys: dict[tuple[int, int], int] = {}
    which = np.array([keys.setdefault((id(runs), shift), len(keys)) for runs, shift in sets], np.int64)
    distinct = {number: sets[at] for at, number in reversed(list(enumerate(which.tolist())))}
    ordered = [distinct[number] for number in range(len(keys))]
    sizes = [len(runs.starts) for runs, _ in ordered]
    owners = np.repeat(np.arange(len(ordered)), sizes)
    starts = np.concatenate([runs.starts + shift for runs, shift in ordered] or [np.zeros(0, np.int64)])
    ends = np.concatenate([runs.ends + shift for runs, shift in ordered] or [np.zeros(0, np.int64)])
    cuts = np.unique(np.concatenate((starts, ends)))
    first, last = np.searchsorted(cuts, starts), np.searchsorted(cuts, ends)
    lengths = last - first
    stretch = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(first, lengths)
    found = _merged(np.repeat(owners, lengths), stretch, len(ordered))
    return _by_set(found, which)


def _by_set(found: Pieces, which: Array) -> Pieces:
    """Return the pieces of sets, where several sets may be the same one."""
    lengths = np.diff(found.starts)[which]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths) + np.repeat(found.starts[which], lengths)
    return Pieces(starts, found.pieces[places], found.total)
