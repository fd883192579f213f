"""The elements of a view in the indices of the tensor that it is a part of: ``ring[0:128, 1, 0:64]``."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.element_boxes import Box, box_text, boxes_text
from nkitools.chip.numerics import Array

if TYPE_CHECKING:
    from nkitools.chip.memory import Storage
    from nkitools.chip.strided_view import StridedView


def own_box(view: StridedView) -> Box | None:
    """Return the box of its tensor that a view is, with dimensions in any order; None for another set of elements."""
    storage, layout = view.storage, view.layout
    if view.dtype != storage.dtype or not view.size:
        return None
    rest, firsts, steps = view.byte_offset, list[int](), _steps(storage)
    for step in steps:
        first, rest = divmod(rest, step)
        firsts.append(first)
    box = [range(first, first + 1) for first in firsts]
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        if size == 1:
            continue
        axis = next((at for at, step in enumerate(steps) if step == stride and storage.shape[at] > 1), None)
        if axis is None or len(box[axis]) > 1:
            return None
        box[axis] = range(firsts[axis], firsts[axis] + size)
    fits = all(each.stop <= size for each, size in zip(box, storage.shape, strict=True))
    return tuple(box) if fits and not rest else None


def slot_of(view: StridedView) -> str:
    """Return ``[:, 1]`` for a view with fewer dimensions than its tensor, '' for others."""
    shape = view.storage.shape
    box = own_box(view) if view.ndim < len(shape) else None
    if box is None:
        return ""
    whole = [len(each) == size for each, size in zip(box, shape, strict=True)]
    if all(whole):
        return ""
    kept = len(shape) - whole[::-1].index(False)
    parts = [":" if is_whole else box_text((each,))[1:-1] for each, is_whole in zip(box[:kept], whole, strict=False)]
    return f"[{', '.join(parts)}]"


def own_boxes(view: StridedView, mask: Array) -> str:
    """Return the elements of a mask over a view as boxes of its tensor, with a gap for the name that the reporter
    fills.

    At most three boxes, then the number of further elements; '' if the elements are not the tensor's own.
    """
    where = _own_mask(view, mask)
    if where is None:
        return ""
    name, end = (f"`{view.name}", "`") if view.name else (f"\x00{view.storage.id}\x00", "")
    return f" {boxes_text(name, where, end)}"


def _own_mask(view: StridedView, mask: Array) -> Array | None:
    view, mask = view.where_it_reads(mask)
    storage, layout = view.storage, view.layout
    if view.dtype != storage.dtype or mask.shape != layout.shape:
        return None
    rest: Array = np.full(int(np.count_nonzero(mask)), view.byte_offset, np.int64)
    for indices, stride in zip(np.nonzero(mask), layout.strides, strict=True):
        rest += indices * stride
    found = list[Array]()
    for step, size in zip(_steps(storage), storage.shape, strict=True):
        index, rest = np.divmod(rest, step)
        if not size or (index < 0).any() or (index >= size).any():
            return None
        found.append(index)
    where: Array = np.zeros(storage.shape, np.bool_)
    where[tuple(found)] = True
    return where


def _steps(storage: Storage) -> list[int]:
    """Return the bytes from one index of each dimension to the next."""
    shape, item = storage.shape, storage.dtype.itemsize
    return [storage.partition_bytes, *(prod(shape[at + 1 :]) * item for at in range(1, len(shape)))]
