"""Which instruction has written an element last: asked of the record of a run, also of a saved one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.rows import Access


@dataclass(frozen=True)
class Writer:
    """The last instruction that wrote an element: its position in the record, the shape of what it wrote, and where.

    ``index`` is the element's in that tile. ``is_certain`` is False where a mask or run-time indices chose the elements
    it wrote, which the record does not keep: then it may be an earlier one, and of a scatter there is no ``index``.
    """

    position: int
    shape: tuple[int, ...]
    index: tuple[int, ...] | None
    is_certain: bool


def last_writer(record: Record, access: Access, index: tuple[int, ...]) -> Writer | None:
    """Who wrote the element at ``index`` of a view last; None where no instruction did (an argument, as it was)."""
    byte = access.byte_offset + sum(at * stride for at, stride in zip(index, access.layout.strides, strict=True))
    columns = Columns(record)
    candidates = np.flatnonzero((columns.storages == access.storage) & columns.written & columns.touched)
    layouts, offsets, positions = columns.layouts, columns.byte_offsets, columns.positions
    asked: dict[tuple[int, int], tuple[int, ...] | None] = {}
    for operand in candidates[::-1].tolist():
        layout = LAYOUTS[int(layouts[operand])]
        position = int(positions[operand])
        if _is_chosen(layout):
            return Writer(position, layout.shape, None, is_certain=False)
        key = (layout.id, int(offsets[operand]))
        if key not in asked:
            asked[key] = index_of(layout, byte - key[1])
        found = asked[key]
        if found is not None:
            plan = record.plan_at(position)
            partly = bool(plan.touches) or plan.chooses is not None
            return Writer(position, layout.shape, found, is_certain=not partly)
    return None


def _is_chosen(layout: Layout) -> bool:
    """Whether an index on the device chooses the elements: the layout is then not where they lie."""
    return any(stride == 0 and size > 1 for stride, size in zip(layout.strides, layout.shape, strict=True))


def index_of(layout: Layout, byte: int) -> tuple[int, ...] | None:
    """The index of the element that has this byte, counted from the view's first element; None where none has.

    Of views whose dimensions lie inside each other, as those of tiles do; any of several where elements share bytes.
    """
    low = sum((size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True) if stride < 0)
    rest = byte - low
    if rest < 0:
        return None
    found = [0] * len(layout.shape)
    for axis in sorted(range(len(found)), key=lambda axis: -abs(layout.strides[axis])):
        size, stride = layout.shape[axis], abs(layout.strides[axis])
        steps = min(rest // stride, size - 1) if stride else 0
        rest -= steps * stride
        found[axis] = steps if layout.strides[axis] >= 0 else size - 1 - steps
    return tuple(found) if rest < layout.dtype.itemsize else None
