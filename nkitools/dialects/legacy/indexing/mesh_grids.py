"""Makers of indices: ``nl.arange`` and ``nl.mgrid``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nkitools.dialects.legacy.indexing.indices import Index, whole
from nkitools.dialects.legacy.indexing.masks import Subscript
from nkitools.rules.finding import refuse


def _line(first: int, end: int, step: int) -> Index:
    positions = range(first, end, step)
    if not positions:
        refuse("NK603", f"nl.arange({first}, {end}, {step}) holds no position")
    return Index(positions[0], (step if len(positions) > 1 else 0,), (len(positions),))


def arange(*args: int) -> Index:
    """Return the index of the positions ``first``, ``first + step``, ... before ``end``, as an axis of a tile.

    It is called as ``nl.arange(end)`` or ``nl.arange(first, end[, step])``. To index a tensor it needs a second
    dimension: ``nl.arange(128)[:, None]`` or ``[None, :]``. Errors: NK603 (no position), NK609.
    """
    numbers = [whole(arg) for arg in args]
    if not 1 <= len(args) <= 3 or None in numbers:
        refuse(
            "NK609",
            f"nl.arange takes one to three integers, it is given {args!r}",
            remedy="Compute each with // instead of /, and give at least one.",
        )
    found = [number for number in numbers if number is not None]
    first, end = (0, found[0]) if len(found) == 1 else (found[0], found[1])
    step = found[2] if len(found) == 3 else 1
    if step == 0:
        refuse("NK609", "nl.arange: the step is 0")
    return _line(first, end, step)


class Grid(tuple[Index, ...]):
    """The indices of a mesh grid: ``.p`` of the partition, ``.x .y .z .w`` of the free dimensions."""

    __slots__ = ()

    def _axis(self, number: int, name: str) -> Index:
        if number >= len(self):
            refuse("NK603", f"a grid of {len(self)} dimensions has no `.{name}`")
        return self[number]

    p = property(lambda self: self._axis(0, "p"), doc="Index of the partition dimension.")
    x = property(lambda self: self._axis(1, "x"), doc="Index of the first free dimension.")
    y = property(lambda self: self._axis(2, "y"), doc="Index of the second free dimension.")
    z = property(lambda self: self._axis(3, "z"), doc="Index of the third free dimension.")
    w = property(lambda self: self._axis(4, "w"), doc="Index of the fourth free dimension.")


class MeshGrid:
    """``nl.mgrid[0:128, 0:512]``: one index for each dimension, all of the grid's shape."""

    def __getitem__(self, key: Subscript) -> Grid:
        slices: Sequence[Any] = key if isinstance(key, tuple) else (key,)
        lines = [self._dimension(item) for item in slices]
        shape = tuple(line.shape[0] for line in lines)
        return Grid(
            Index(
                line.constant, tuple(line.coefficients[0] if axis == number else 0 for axis in range(len(shape))), shape
            )
            for number, line in enumerate(lines)
        )

    def _dimension(self, item: slice) -> Index:
        parts = [item.start or 0, item.stop, item.step or 1] if isinstance(item, slice) else [None]
        numbers = [number for part in parts if (number := whole(part)) is not None]
        if len(numbers) != 3:
            refuse("NK609", f"nl.mgrid is subscripted with slices of integers, first:end[:step], not with {item!r}")
        return _line(*numbers)


mgrid = MeshGrid()
