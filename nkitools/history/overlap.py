"""The bytes of a storage that strided, masked and gathered accesses touch: exactly, not by their bounding boxes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from nkitools.chip.layout import Layout, run_of
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import picture_of
from nkitools.history.shared_accesses import SharedAccess
from nkitools.rules.finding import Picture


class _Pattern(NamedTuple):
    """Dimensions that are looked at one by one (sizes, strides), and the run of bytes inside of them.

    Seen from the first element it reaches from ``low`` to ``high``; ``grain`` divides the run and all strides.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    run: int
    low: int
    high: int
    grain: int

    @classmethod
    def of(cls, dimensions: list[tuple[int, int]], run: int) -> _Pattern:
        """Return the pattern of (size, stride) pairs around a run."""
        steps = [(size - 1) * stride for size, stride in dimensions]
        low, high = sum(min(0, step) for step in steps), sum(max(0, step) for step in steps) + run
        sizes, strides = tuple(size for size, _ in dimensions), tuple(stride for _, stride in dimensions)
        return cls(sizes, strides, run, low, high, gcd(run, *strides))


@cache  # layouts live as long as the process
def _whole(layout: Layout) -> _Pattern:
    """Return a view. Elements that are repeated are touched once."""
    return _Pattern.of([(size, stride) for size, stride in layout.runs if stride], layout.run)


@cache
def _element_by_element(layout: Layout) -> _Pattern:
    return _Pattern.of(list(zip(layout.shape, layout.strides, strict=True)), layout.dtype.itemsize)


@cache
def _in_a_row(layout: Layout) -> tuple[list[tuple[int, int]], int]:
    dimensions, run = run_of(list(zip(layout.shape[1:], layout.strides[1:], strict=True)), layout.dtype.itemsize)
    return [(size, stride) for size, stride in dimensions if stride], run


def _placed(access: SharedAccess) -> tuple[_Pattern, int]:
    """Return the pattern of an access and its first byte; of chosen rows all from the first to the last."""
    layout, rows = access.layout, access.rows
    if access.lanes is not None:
        return _element_by_element(layout), access.byte_offset
    if rows is None:
        return _whole(layout), access.byte_offset
    dimensions, run = _in_a_row(layout)
    step = layout.strides[0]
    first, count = (int(rows[0]), int(rows[-1] - rows[0]) + 1) if rows.size else (0, 1)
    return _Pattern.of([(count, step), *dimensions], run), access.byte_offset + first * step


def reach(access: SharedAccess) -> tuple[int, int]:
    """Return the first byte of an access, and the one behind its last."""
    pattern, start = _placed(access)
    return start + pattern.low, start + pattern.high


def grain(accesses: Iterable[SharedAccess], origin: int) -> int:
    """Return the longest stretch of bytes that every access, seen from ``origin``, touches as a whole or not at all."""
    unit = 0
    for access in accesses:
        pattern, start = _placed(access)
        unit = gcd(unit, pattern.grain, start - origin)
    return unit


def mark(flags: Array, value: int, access: SharedAccess, origin: int, unit: int) -> None:
    """Or ``value`` into the flags of the bytes that an access touches; ``unit`` bytes a flag, from ``origin`` on."""
    rows = access.rows
    if rows is not None and not rows.size:
        return
    pattern, start = _placed(access)
    shape = (*pattern.sizes, pattern.run // unit)
    steps = (*(stride // unit for stride in pattern.strides), 1)
    view: Array = np.ndarray(shape, np.uint8, flags, (start - origin) // unit, steps)
    if rows is not None:
        view[rows - rows[0]] |= value
    elif access.lanes is not None:
        view[access.lanes] |= value
    else:
        view |= value


def picture_of_two(first: SharedAccess, second: SharedAccess, shape: tuple[int, ...], itemsize: int) -> Picture:
    """Return the elements of a storage that two accesses touch, apart and together."""
    unit = gcd(grain((first, second), 0), itemsize)
    touched: Array = np.zeros(prod(shape) * itemsize // unit, np.uint8)
    signs = {0: (".", "neither"), 3: ("#", "both")}
    for code, access in enumerate((first, second), start=1):
        mark(touched, code, access, 0, unit)
        program = ", ".join(map(str, access.program))
        signs[code] = ("ab"[code - 1], f"program {program} {'writes' if access.written else 'reads'}")
    codes = np.bitwise_or.reduce(touched.reshape(-1, itemsize // unit), axis=1)
    return picture_of(codes.reshape(shape), dict(sorted(signs.items())))
