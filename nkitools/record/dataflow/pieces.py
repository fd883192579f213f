"""A memory cut into pieces: every access touches all bytes of a piece or none.

The last writer is then looked up for pieces in place of elements: most views have one or a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part
from nkitools.record.dataflow.elements import Box, Forms, Runs

_MOST_CELLS = 64  # of a grid, for each view
_ONE_DIGIT = 1 << 62  # larger than any


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

    @property
    def are_apart(self) -> bool:
        """Return whether no two views share elements, so that each view is a piece."""
        return self.pieces.size == self.total == self.starts.size - 1

    def by_view(self, views: Iterable[View]) -> dict[View, Array]:
        """Return the pieces of each view; ``views``: all of them, in their order."""
        return dict(zip(views, np.split(self.pieces, self.starts[1:-1]), strict=True))


def pieces_of(views: Sequence[View], pitches: Sequence[int], forms: Forms) -> Pieces:
    """Return the pieces that some distinct views of a memory are made of; ``pitches``: rows that it may be cut into."""
    return _of_plain(views) or _cut(boxes_of(views, pitches, forms)[1])


def boxes_of(views: Sequence[View], pitches: Sequence[int], forms: Forms) -> tuple[int, list[list[Box]]]:
    """Return the first length of rows by which all views are boxes, and the boxes of each view."""
    for pitch in pitches:
        boxes = [forms.boxes(each.layout, each.part, each.byte, pitch) for each in views]
        known = [each for each in boxes if each is not None]
        if len(known) == len(boxes):
            return pitch, known
    raise ValueError("the last pitch takes every view")


def _of_plain(views: Sequence[View]) -> Pieces | None:
    """Return the pieces of views that are slices without steps; None if one is not, or if there are too many.

    A byte's address is written with one digit for each stride of the views (partition, row, element, byte, say). Each
    view is then a range of each digit. The edges of all ranges make a grid, and cells of it that belong to the same
    views are one piece.
    """
    layouts = {each.layout for each in views}
    dimensions = {each for layout in layouts for each in zip(layout.shape, layout.strides, strict=True)}
    units = sorted({1, *(abs(stride) for size, stride in dimensions if size > 1 and stride)})
    if any(large % small for small, large in pairwise(units)) or any(each.part is not None for each in views):
        return None
    radices = [*(large // small for small, large in pairwise(units)), _ONE_DIGIT]
    spans = {each: _spans(each, units, radices) for each in layouts}
    if not all(spans.values()):
        return None
    rest, edges = [each.byte + spans[each.layout][-1] for each in views], list[list[range]]()
    for at, unit in reversed(list(enumerate(units))):
        firsts = [byte // unit for byte in rest]
        rest = [byte % unit for byte in rest]
        stretches = [(first, first + spans[each.layout][at]) for first, each in zip(firsts, views, strict=True)]
        if max(last for _, last in stretches) > radices[at]:
            return None
        if len(set(stretches)) > 1:
            places = {edge: place for place, edge in enumerate(sorted(set(chain.from_iterable(stretches))))}
            edges.append([range(places[first], places[last]) for first, last in stretches])
    return _of_grid(list(zip(*edges, strict=True))) if edges else _of_grid([()] * len(views))


def _of_grid(boxes: Sequence[Sequence[range]]) -> Pieces | None:
    """Return the pieces of boxes of cells; None if there are too many cells."""
    if sum(prod(map(len, box)) for box in boxes) > _MOST_CELLS * len(boxes):
        return None
    owners: dict[tuple[int, ...], list[int]] = {}
    for number, box in enumerate(boxes):
        for cell in product(*box):
            owners.setdefault(cell, []).append(number)
    pieces = {mine: at for at, mine in enumerate(dict.fromkeys(map(tuple, owners.values())))}
    found: list[list[int]] = [[] for _ in boxes]
    for mine, piece in pieces.items():
        for number in mine:
            found[number].append(piece)
    starts = np.cumsum([0, *map(len, found)])
    return Pieces(starts, np.array(list(chain.from_iterable(found)), np.int64), len(pieces))


def _spans(layout: Layout, units: Sequence[int], radices: Sequence[int]) -> list[int]:
    """Return the number of values that each digit of a view's addresses takes, and the lowest address; [] if it has
    gaps.
    """
    spans, low = dict.fromkeys(units, 1), 0
    for size, stride in ((layout.dtype.itemsize, 1), *zip(layout.shape, layout.strides, strict=True)):
        if size > 1 and stride:
            low += min(0, (size - 1) * stride)
            if spans[abs(stride)] > 1:
                return []
            spans[abs(stride)] = size
    for (unit, larger), radix in zip(pairwise(units), radices, strict=False):
        times, rest = divmod(spans[unit], radix)
        if times > 1 or (times and rest):  # it goes on in the next digit
            if rest or spans[larger] > 1:
                return []
            spans[unit], spans[larger] = radix, times
    return [*spans.values(), low]


def _cut(boxes: Sequence[Sequence[Box]]) -> Pieces:
    """Return the pieces of views that may overlap in any way.

    Rows that lie in the same boxes are one class, and so are bytes of a row. A box is then some classes of rows by some
    classes of bytes: cells. Cells that belong to the same views are one piece.
    """
    flat = [(number, box) for number, each in enumerate(boxes) for box in each]
    owners = np.array([number for number, _ in flat], np.int64)
    rows = _classes([(box.rows, box.row) for _, box in flat])
    columns = _classes([(box.columns, box.column) for _, box in flat])
    height, width = np.diff(rows.starts), np.diff(columns.starts)
    counts = height * width
    box = np.repeat(np.arange(len(flat)), counts)
    within = ranges(np.zeros_like(counts), counts)
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
    """Return classes of numbers: those in the same sets are one class. Each set is runs, shifted by a number."""
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
    found = _merged(np.repeat(owners, lengths), ranges(first, lengths), len(ordered))
    return _by_set(found, which)


def _by_set(found: Pieces, which: Array) -> Pieces:
    """Return the pieces of each set; several sets may be equal."""
    lengths = np.diff(found.starts)[which]
    places = ranges(found.starts[which], lengths)
    return Pieces(np.concatenate(([0], np.cumsum(lengths))), found.pieces[places], found.total)


def ranges(firsts: Array, lengths: Array) -> Array:
    """Return the numbers from each first on, as many as its length, one range after the other."""
    moved = (firsts - lengths.cumsum() + lengths).repeat(lengths)
    return np.asarray(moved + np.arange(moved.size))
