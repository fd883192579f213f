"""The last writer of an element: asked of the record of a run, also of a saved one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses, row_lengths
from nkitools.record.dataflow.cells import cells_of
from nkitools.record.dataflow.last_accesses import MAY_WRITE, WRITES
from nkitools.record.dataflow.pieces import View
from nkitools.record.record import Record
from nkitools.record.rows import Access


@dataclass(frozen=True)
class Writer:
    """The last instruction that wrote an element: its position in the record and the shape of the written tile.

    ``index`` is the element's index in that tile; None for a scatter. ``is_certain`` is False if a mask or run-time
    indices chose the written elements: the record does not keep the choice, so an earlier instruction may be the
    writer.
    """

    position: int
    shape: tuple[int, ...]
    index: tuple[int, ...] | None
    is_certain: bool


class _Write(NamedTuple):
    """A write to a storage."""

    position: int
    view: View
    is_certain: bool

    @property
    def may_be_anywhere(self) -> bool:
        """Return whether an index on the device has chosen the elements, which old saved runs do not keep."""
        layout, part = self.view.layout, self.view.part
        return part is None and any(
            size > 1 and not step for size, step in zip(layout.shape, layout.strides, strict=True)
        )


def last_writer(record: Record, access: Access, index: tuple[int, ...]) -> Writer | None:
    """Return the last writer of the element at ``index`` of a view; None if it was never written (an argument)."""
    byte = access.byte_offset + sum(at * stride for at, stride in zip(index, access.layout.strides, strict=True))
    writes, (last,) = _last_writes(record, Columns(record), access.storage, np.array([byte]))
    if last < 0:
        return None
    position, (layout, first, part), is_certain = write = writes[last]
    shows_index = not write.may_be_anywhere and (part is None or part.bits is not None)
    found = index_of(layout, byte - first) if shows_index else None
    return Writer(position, layout.shape, found, is_certain and not write.may_be_anywhere)


def last_writers(record: Record, columns: Columns, access: Access) -> Array:
    """Return for each element of a view the position of the last instruction that may have written it; -1 for none."""
    writes, last = _last_writes(record, columns, access.storage, access.byte_offset + bytes_of(access.layout))
    return np.array([*(each.position for each in writes), -1])[last]


def _last_writes(record: Record, columns: Columns, storage: int, asked: Array) -> tuple[list[_Write], Array]:
    """Return the writes to a storage, and the number of the last write to each byte of ``asked``; -1 for none."""
    accesses = Accesses(record, columns)
    accesses.take(np.flatnonzero((accesses.storages == storage) & ((accesses.kinds & (WRITES | MAY_WRITE)) != 0)))
    views = accesses.shown(np.arange(accesses.views.storages.size), accesses.views.byte_offsets)
    which, certain = accesses.views.which.tolist(), ((accesses.kinds & MAY_WRITE) == 0).tolist()
    writes = [
        _Write(position, views[view], is_certain)
        for position, view, is_certain in zip(accesses.positions.tolist(), which, certain, strict=True)
    ]
    if not writes:
        return writes, np.full(asked.shape, -1)
    cells = cells_of(views, row_lengths(record.storages.get(storage)))
    last: Array = np.full((cells.rows.size, cells.columns.size), -1)
    for number, write in enumerate(writes):
        last.reshape(-1)[... if write.may_be_anywhere else cells.by_view[write.view]] = number
    return writes, last[cells.at(asked)]


def index_of(layout: Layout, byte: int) -> tuple[int, ...] | None:
    """Return the index of an element with this byte, counted from the view's first element; None if none has it."""
    behind = byte - bytes_of(layout)
    found = np.argwhere((behind >= 0) & (behind < layout.dtype.itemsize))
    return tuple(found[0].tolist()) if len(found) else None


def bytes_of(layout: Layout) -> Array:
    """Return the first byte of each element of a view, counted from the view's first element."""
    found: Array = np.zeros((), np.int64)
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        found = np.add.outer(found, np.arange(size) * stride)
    return found
