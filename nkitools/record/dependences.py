"""Which instructions made what an instruction reads: found in one walk over the record, near-linear in its length.

A view is taken as the rectangle around it, rows (in HBM of the last dimension, on chip partitions) by bytes. The edges
of all rectangles of a storage cut it into cells, and each cell knows who wrote it last, so that an access touches the
few cells of its rectangle. A view with gaps between its elements is kept beside, as it leaves what lies in the gaps.
Storages that share bytes because the author gave them addresses are not followed into each other, nor are the indices
of an indirect access, which are no operands in the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.record import Record, StorageRecord

_MOST_CELLS = 1 << 22  # of a storage; beyond it the rows alone are cut


class _Rectangle(NamedTuple):
    """Rows and bytes of a row, each from the first to before the last; ``is_filled``: the view has no gaps in it."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    is_filled: bool

    def meets(self, other: _Rectangle) -> bool:
        """Whether they have bytes in common."""
        return all(
            mine[0] < theirs[1] and theirs[0] < mine[1]
            for mine, theirs in ((self.rows, other.rows), (self.columns, other.columns))
        )

    def holds(self, other: _Rectangle) -> bool:
        """Whether the other lies in it."""
        return all(
            mine[0] <= theirs[0] and theirs[1] <= mine[1]
            for mine, theirs in ((self.rows, other.rows), (self.columns, other.columns))
        )


@dataclass
class _Cells:
    """A storage cut into cells: who wrote each last (-1: nobody), and the views with gaps that were written since."""

    writers: Array
    views: dict[int, tuple[_Rectangle, slice, slice]]
    sparse: dict[int, int] = field(default_factory=dict)

    def read(self, view: int) -> set[int]:
        """Who wrote what the view shows."""
        rectangle, rows, columns = self.views[view]
        cells = self.writers[rows, columns]
        found = {int(cells[0, 0])} if cells.size == 1 else set(np.unique(cells).tolist())
        found.update(position for other, position in self.sparse.items() if self.views[other][0].meets(rectangle))
        found.discard(-1)
        return found

    def write(self, view: int, position: int) -> None:
        """The instruction at ``position`` has written the view."""
        rectangle, rows, columns = self.views[view]
        if not rectangle.is_filled:
            self.sparse[view] = position
            return
        self.writers[rows, columns] = position
        for other in [other for other in self.sparse if rectangle.holds(self.views[other][0])]:
            del self.sparse[other]


def dependences(record: Record) -> Iterator[set[int]]:
    """For each instruction, in order: the positions of those that wrote last what it reads, or adds to."""
    columns = Columns(record)
    views, cells_of = _views(record, columns)
    reads = ~columns.written | _added_to(record, columns)
    starts = np.searchsorted(columns.positions, np.arange(record.count + 1)).tolist()
    operands = list(
        zip(
            columns.storages.tolist(),
            views.tolist(),
            (reads & columns.touched).tolist(),
            (columns.written & columns.touched).tolist(),
            strict=True,
        )
    )
    for position in range(record.count):
        found: set[int] = set()
        mine = operands[starts[position] : starts[position + 1]]
        for storage, view, is_read, _ in mine:
            if is_read:
                found |= cells_of[storage].read(view)
        for storage, view, _, is_written in mine:
            if is_written:
                cells_of[storage].write(view, position)
        yield found


def _added_to(record: Record, columns: Columns) -> Array:
    """Which operands are written by adding to what is there: accumulating matmuls and their kin."""

    def answer(plan: Any) -> list[bool]:
        adds = not plan.overwrites if plan.engine == "tensor" else plan.wants_fresh
        return [written and adds for written in plan.written]

    return columns.of_plans(answer)


def _views(record: Record, columns: Columns) -> tuple[Array, dict[int, _Cells]]:
    """The views that operands are, as numbers, and the cells of each storage."""
    keys = np.stack([columns.storages, columns.layouts, columns.byte_offsets], axis=1)
    distinct, numbers = np.unique(keys, axis=0, return_inverse=True)
    by_storage: dict[int, dict[int, tuple[Layout, int]]] = {}
    for number, (storage, layout, byte_offset) in enumerate(distinct.tolist()):
        by_storage.setdefault(storage, {})[number] = (LAYOUTS[layout], byte_offset)
    cells = {storage: _cells(record.storages[storage], views) for storage, views in by_storage.items()}
    return numbers.reshape(-1), cells


def _cells(storage: StorageRecord, views: dict[int, tuple[Layout, int]]) -> _Cells:
    pitch = _pitch(storage, [layout for layout, _ in views.values()])
    rows = -(-prod(storage.shape) * as_dtype(storage.dtype).itemsize // pitch)
    rectangles = {
        number: _Rectangle((0, rows), (0, pitch), is_filled=False)
        if _may_be_anywhere(layout)
        else _rectangle(layout, byte_offset, pitch)
        for number, (layout, byte_offset) in views.items()
    }
    row_cuts = sorted({edge for each in rectangles.values() for edge in each.rows})
    column_cuts = sorted({edge for each in rectangles.values() for edge in each.columns})
    if len(row_cuts) * len(column_cuts) > _MOST_CELLS:
        column_cuts = [0, pitch]
        rectangles = {
            number: _Rectangle(each.rows, (0, pitch), each.is_filled and each.columns == (0, pitch))
            for number, each in rectangles.items()
        }
    row_at = {edge: at for at, edge in enumerate(row_cuts)}
    column_at = {edge: at for at, edge in enumerate(column_cuts)}
    placed = {
        number: (
            each,
            slice(row_at[each.rows[0]], row_at[each.rows[1]]),
            slice(column_at[each.columns[0]], column_at[each.columns[1]]),
        )
        for number, each in rectangles.items()
    }
    return _Cells(np.full((len(row_cuts), len(column_cuts)), -1, np.int64), placed)


def _pitch(storage: StorageRecord, layouts: list[Layout]) -> int:
    """The bytes from one row to the next."""
    itemsize = as_dtype(storage.dtype).itemsize
    if not layouts[0].on_chip:
        return max(1, storage.shape[-1] * itemsize if storage.shape else itemsize)
    # Where the author has given addresses, a partition is longer than the tensor's part of it.
    steps = (abs(each.strides[0]) // each.partition_step for each in layouts if each.shape[0] > 1 and each.strides[0])
    return max(prod(storage.shape[1:]) * itemsize, *steps, 1)


def _may_be_anywhere(layout: Layout) -> bool:
    """Whether indices on the device may choose the rows; a row of HBM that is read many times looks the same."""
    return not layout.on_chip and any(
        stride == 0 and size > 1 for stride, size in zip(layout.strides, layout.shape, strict=True)
    )


def _rectangle(layout: Layout, byte_offset: int, pitch: int) -> _Rectangle:
    dimensions = [(size, stride) for size, stride in zip(layout.shape, layout.strides, strict=True) if size > 1]
    low = byte_offset + sum((size - 1) * stride for size, stride in dimensions if stride < 0)
    down = across = 0
    is_filled = layout.injective
    for size, stride in dimensions:
        reach = (size - 1) * abs(stride)
        if abs(stride) >= pitch:
            down += reach // pitch
            across += (reach % pitch) and pitch  # a step that is no whole number of rows
        else:
            across += reach
    width = across + layout.dtype.itemsize
    row, column = divmod(low, pitch)
    rows, columns = (row, row + down + 1), (column, column + width)
    if columns[1] > pitch:
        rows, columns = (row, rows[1] + (columns[1] - 1) // pitch), (0, pitch)
    area = (rows[1] - rows[0]) * (columns[1] - columns[0])
    return _Rectangle(rows, columns, is_filled and area == layout.nbytes)
