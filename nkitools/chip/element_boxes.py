"""Ranges of elements as boxes in a tensor's own indices: ``[128:256, 0:64]``."""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array

Box = tuple[range, ...]

MOST_BOXES = 3


def boxes_of(mask: Array, most: int = MOST_BOXES) -> tuple[list[Box], int]:
    """Return boxes that cover the true elements of a mask, the first ones first, and how many elements are in none."""
    left, found = np.array(mask, np.bool_), list[Box]()
    flat = left.reshape(-1)
    while len(found) < most:
        first = int(flat.argmax()) if flat.size else 0
        if not flat.size or not flat[first]:
            break
        corner = np.unravel_index(first, left.shape)
        box = [slice(int(at), int(at) + 1) for at in corner]
        for axis in reversed(range(left.ndim)):
            box[axis] = slice(box[axis].start, _reach(left, box, axis))
        left[tuple(box)] = False
        found.append(tuple(range(each.start, each.stop) for each in box))
    return found, int(np.count_nonzero(left))


def _reach(mask: Array, box: list[slice], axis: int) -> int:
    """Return the end to which a box can be extended along a dimension."""
    ahead = list(box)
    ahead[axis] = slice(box[axis].start, mask.shape[axis])
    others = tuple(each for each in range(mask.ndim) if each != axis)
    whole = mask[tuple(ahead)].all(axis=others)
    ends = np.flatnonzero(~whole)
    return int(box[axis].start) + (int(ends[0]) if ends.size else whole.size)


def box_text(box: Box) -> str:
    """Return ``[3, 0:64]``."""
    return "[" + ", ".join(str(each.start) if len(each) == 1 else f"{each.start}:{each.stop}" for each in box) + "]"


def boxes_text(name: str, mask: Array, end: str = "") -> str:
    """Return ``x[0:4, 1], x[6, 0:2] and 3 more elements``: at most three boxes, each with an ``end`` behind it."""
    boxes, more = boxes_of(mask)
    text = ", ".join(f"{name}{box_text(box)}{end}" for box in boxes)
    return text if not more else f"{text} and {more} more element{'s' if more > 1 else ''}"
