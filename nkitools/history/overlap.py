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
    """The (size, stride) pairs of dimensions that are looked at one by one, and the run of bytes inside of them.

    Seen from the first element it reaches from ``low`` to ``high``; ``grain`` divides the run and all strides.
    """

    dimensions: tuple[tuple[int, int], ...]
    run: int
    low: int
    high: int
    grain: int


@cache  # layouts live as long as the process
def _pattern_of(layout: Layout, kept: int) -> _Pattern:
    """Return the pattern of a view whose first ``kept`` dimensions are chosen from; repeated others are there once."""
    every = list(zip(layout.shape, layout.strides, strict=True))
    inner, run = run_of(every[kept:], layout.dtype.itemsize)
    dimensions = (*every[:kept], *((size, stride) for size, stride in inner if stride))
    steps = [(size - 1) * stride for size, stride in dimensions]
    low, high = sum(min(0, step) for step in steps), sum(max(0, step) for step in steps) + run
    return _Pattern(dimensions, run, low, high, gcd(run, *(stride for _, stride in dimensions)))


def _pattern(access: SharedAccess) -> _Pattern:
    kept = 1 if access.rows is not None else 0 if access.lanes is None else len(access.layout.shape)
    return _pattern_of(access.layout, kept)


def reach(access: SharedAccess) -> tuple[int, int]:
    """Return the first byte of an access, and the one behind its last."""
    pattern = _pattern(access)
    return access.byte_offset + pattern.low, access.byte_offset + pattern.high


def grain(accesses: Iterable[SharedAccess], origin: int) -> int:
    """Return the longest stretch of bytes that every access, seen from ``origin``, touches as a whole or not at all."""
    unit = 0
    for access in accesses:
        unit = gcd(unit, _pattern(access).grain, access.byte_offset - origin)
    return unit


def mark(flags: Array, value: int, access: SharedAccess, origin: int, unit: int) -> None:
    """Or ``value`` into the flags of the bytes that an access touches; ``unit`` bytes a flag, from ``origin`` on."""
    pattern = _pattern(access)
    shape = (*(size for size, _ in pattern.dimensions), pattern.run // unit)
    steps = (*(stride // unit for _, stride in pattern.dimensions), 1)
    view: Array = np.ndarray(shape, np.uint8, flags, (access.byte_offset - origin) // unit, steps)
    if access.rows is not None:
        view[access.rows] |= value
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
