"""The bytes that an access touches, as boxes: sets of rows by sets of bytes of a row.

A memory is cut into rows of equal length (``pitch`` bytes): a partition on chip, one or more dimensions of a tensor in
HBM. A view that is made of slices is then one box, whatever its strides are, and a masked one a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part

ONE_ROW = 1 << 62  # bytes: longer than any memory


class Runs(NamedTuple):
    """Numbers in stretches that do not touch each other: the first of each stretch, and the one behind its last."""

    starts: Array
    ends: Array


class Box(NamedTuple):
    """Rows and bytes of a row, each moved by a number of rows or bytes."""

    rows: Runs
    row: int
    columns: Runs
    column: int


class _Form(NamedTuple):
    """The boxes of a view from its first byte on, and how far they reach to both sides in a row."""

    boxes: tuple[tuple[Runs, Runs], ...]
    low: int
    high: int


_Dimensions = Sequence[tuple[int, int]]  # size and stride of each


class Forms:
    """The boxes of views, kept for views of the same form at other places."""

    def __init__(self) -> None:
        self._forms: dict[tuple[Layout, Part | None, int], _Form | None] = {}

    def boxes(self, layout: Layout, part: Part | None, byte: int, pitch: int) -> list[Box] | None:
        """Return the boxes of a view that begins at ``byte``; None if it is not boxes in rows of ``pitch`` bytes."""
        key = (layout, part, pitch)
        if key not in self._forms:
            self._forms[key] = _form(layout, part, pitch)
        form = self._forms[key]
        row, column = divmod(byte, pitch)
        if form is None or column + form.low < 0 or column + form.high > pitch:
            return None
        return [Box(rows, row, columns, column) for rows, columns in form.boxes]


def pitches_of(shape: Sequence[int], itemsize: int) -> list[int]:
    """Return the lengths of rows that a tensor in HBM may be cut into; the last one makes it a single row."""
    found = [itemsize * prod(shape[axis:]) for axis in reversed(range(len(shape)))]
    return [each for at, each in enumerate(found) if each and each not in found[:at]] or [itemsize]


def _form(layout: Layout, part: Part | None, pitch: int) -> _Form | None:
    if part is None:
        dimensions = _split(zip(layout.shape, layout.strides, strict=True), pitch)
        down, across = _sorted_out(dimensions, pitch)
        boxes = [(runs_of(_offsets(down) // pitch, 1), _across(across, layout.dtype.itemsize))]
    elif part.bits is None:
        boxes = _chosen(part, pitch)
    else:
        boxes = _masked(part, pitch)
    low = min((int(columns.starts[0]) for _, columns in boxes if columns.starts.size), default=0)
    high = max((int(columns.ends[-1]) for _, columns in boxes if columns.ends.size), default=0)
    return _Form(tuple(boxes), low, high) if high - low <= pitch else None


def _chosen(part: Part, pitch: int) -> list[tuple[Runs, Runs]]:
    """Return the box of chosen rows or columns."""
    layout, chosen = part.layout, part.rows if part.columns is None else part.columns
    assert chosen is not None
    axis = 0 if part.columns is None else 1
    dimensions = list(zip(layout.shape, layout.strides, strict=True))
    offsets = chosen.astype(np.int64) * dimensions.pop(axis)[1]
    down, across = _sorted_out(dimensions, pitch)
    itemsize = layout.dtype.itemsize
    if axis == 0 and layout.strides[0] % pitch == 0:
        rows = (offsets[:, None] + _offsets(down)).reshape(-1)
        return [(runs_of(rows // pitch, 1), _across(across, itemsize))]
    columns = (offsets[:, None] + _offsets(across)).reshape(-1)
    return [(runs_of(_offsets(down) // pitch, 1), runs_of(columns, itemsize))]


def _masked(part: Part, pitch: int) -> list[tuple[Runs, Runs]]:
    """Return a box for each pattern that rows of a mask have."""
    lanes, layout = part.lanes, part.layout
    assert lanes is not None
    dimensions = list(zip(layout.shape, layout.strides, strict=True))
    repeated = tuple(axis for axis, (_, stride) in enumerate(dimensions) if not stride)
    lanes = np.logical_or.reduce(lanes, repeated, keepdims=True) if repeated else lanes
    dimensions = [(size if stride else 1, stride) for size, stride in dimensions]
    is_down = [stride != 0 and stride % pitch == 0 for _, stride in dimensions]
    down, across = (
        [each for each, mine in zip(dimensions, is_down, strict=True) if mine is want] for want in (True, False)
    )
    order = [axis for want in (True, False) for axis, mine in enumerate(is_down) if mine is want]
    table = lanes.transpose(order).reshape(prod(size for size, _ in down), -1)
    rows, columns = _offsets(down) // pitch, _offsets(across)
    patterns, which = np.unique(np.packbits(table, axis=1), axis=0, return_inverse=True)
    boxes = []
    for number in range(len(patterns)):
        mine = np.flatnonzero(which.reshape(-1) == number)
        lit = table[mine[0]]
        if lit.any():
            boxes.append((runs_of(rows[mine], 1), runs_of(columns[lit], layout.dtype.itemsize)))
    return boxes


def _split(dimensions: Iterable[tuple[int, int]], pitch: int) -> list[tuple[int, int]]:
    """Return the dimensions; one that covers several whole rows becomes two."""
    found = []
    for size, stride in dimensions:
        if size < 2 or not stride:
            continue
        step = abs(stride)
        in_row = pitch // step if step < pitch and pitch % step == 0 else 0
        if in_row and size > in_row and size % in_row == 0:
            found += [(size // in_row, in_row * stride), (in_row, stride)]
        else:
            found.append((size, stride))
    return found


def _sorted_out(dimensions: _Dimensions, pitch: int) -> tuple[_Dimensions, _Dimensions]:
    """Return the dimensions that go from row to row, and those within a row."""
    down = [(size, stride) for size, stride in dimensions if stride and stride % pitch == 0]
    return down, [(size, stride) for size, stride in dimensions if stride % pitch]


def _across(dimensions: _Dimensions, itemsize: int) -> Runs:
    """Return the bytes of a row that elements have at these dimensions."""
    low = sum((size - 1) * stride for size, stride in dimensions if stride < 0)
    outer = sorted(((abs(stride), size) for size, stride in dimensions if size > 1), reverse=True)
    run = itemsize
    while outer and outer[-1][0] == run:
        run *= outer.pop()[1]
    return runs_of(low + _offsets([(size, stride) for stride, size in outer]), run)


def _offsets(dimensions: _Dimensions) -> Array:
    offsets: Array = np.zeros(1, np.int64)
    for size, stride in dimensions:
        offsets = (offsets[:, None] + np.arange(size) * stride).reshape(-1)
    return offsets


def runs_of(starts: Array, width: int) -> Runs:
    """Return the numbers that lie in the stretches of this width which begin at ``starts``."""
    if starts.size < 2:
        return Runs(starts, starts + width)
    starts = np.sort(starts)
    gaps = starts[1:] > starts[:-1] + width
    if not gaps.any():
        return Runs(starts[:1], starts[-1:] + width)
    return Runs(starts[np.concatenate(([True], gaps))], starts[np.concatenate((gaps, [True]))] + width)
