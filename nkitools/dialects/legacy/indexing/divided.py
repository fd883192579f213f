"""Indices divided by constants: ``nl.arange(n)[None, :] // 3`` and ``% 3``, which the documents call not affine.

Compilers have accepted them if they address a strided view, as ``t[i_p, i_f // 3, i_f % 3]`` does (NK621).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.access import out_of_bounds
from nkitools.dialects.legacy.indexing.indices import Divided, Index, NonAffine, whole, within
from nkitools.dialects.legacy.indexing.masks import Box
from nkitools.rules.finding import report

Steps: TypeAlias = list[tuple[int, int]]  # the size and the stride of each part of an axis, the outer one first


class DividedAccess:
    """A tensor under indices, some of them divided: the byte offset of every position of the tile."""

    __slots__ = ("offsets", "reason", "shape", "tensor")

    def __init__(self, tensor: NkiTensor, offsets: Array, reason: str) -> None:
        self.tensor = tensor
        self.offsets = offsets
        self.reason = reason
        self.shape: tuple[int, ...] = offsets.shape

    def violation(self, box: Box | None = None) -> None:
        """Return None: an index that leaves the tensor was refused before."""

    def view(self, box: Box | None = None) -> NkiTensor:
        """Return the tile, or a box of it, as a view; an axis may be cut into several. Errors: NK603, NK621."""
        offsets = self.offsets if box is None else self.offsets[tuple(slice(*each) for each in box)]
        axes = _axes(offsets)
        if axes is None or (self.tensor.on_chip and not self._keeps_partitions(axes[0])):
            NonAffine(self.reason).refuse()
        self._report()
        parts = [part for axis in axes for part in axis]
        tensor, first = self.tensor, int(offsets.flat[0])
        window = tensor.storage.window(
            tuple(size for size, _ in parts), tensor.dtype, first, tuple(step for _, step in parts)
        )
        return tensor._view(window, first)

    def _keeps_partitions(self, axis: Steps) -> bool:
        """Return whether axis 0 of the tile indexes neighbouring partitions and nothing else."""
        return axis[0][0] == 1 or axis == [(axis[0][0], self.tensor.array.strides[0])]

    def _report(self) -> None:
        """NK621: it is computed."""
        message = (
            f"an index of {describe(self.tensor)} holds {self.reason}, which is not affine as the documents ask for; "
            "compilers have taken it where it addresses a regular pattern"
        )
        remedy = "Split the axis into two nl.arange of their own: outer * size + inner instead of // and %."
        report("NK621", message, about=(self.tensor,), remedy=remedy)


def divided_access(tensor: NkiTensor, items: Sequence[Any]) -> DividedAccess:
    """Return the access of an index tuple with divided indices, which names every dimension. Errors: NK402, NK603."""
    reason = next(each.reason for each in items if isinstance(each, Divided))
    shapes = [each.shape for each in items if isinstance(each, (Divided, Index))]
    if len(items) != tensor.ndim or len({len(each) for each in shapes}) > 1:
        NonAffine(reason).refuse()
    shape = np.broadcast_shapes(*shapes)
    box = tuple((0, size) for size in shape)
    offsets: Array = np.full(shape, tensor.byte_offset, np.int64)
    for dim, (item, size, stride) in enumerate(zip(items, tensor.shape, tensor.array.strides, strict=True)):
        values = _values(item, box, size)
        if values is None:
            NonAffine(reason).refuse()
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= size:
            out_of_bounds(tensor, dim, low, high, size)
        offsets = offsets + values * stride
    return DividedAccess(tensor, offsets, reason)


def _values(item: Any, box: Box, size: int) -> Array | None:
    """Return the positions of an item of an index tuple; None if it is no index."""
    if isinstance(item, (Divided, Index)):
        return item.values(within(box, item.shape))
    number = whole(item)
    return None if number is None else np.asarray(number + size if number < 0 else number)


def _axes(offsets: Array) -> list[Steps] | None:
    """Return the regular pattern of each axis; None if the offsets are no sum of such patterns."""
    dims = range(offsets.ndim)
    lines = [offsets[tuple(slice(None) if dim == axis else 0 for dim in dims)] for axis in dims]
    total = offsets.flat[0] + sum(
        (line - line[0]).reshape([-1 if dim == axis else 1 for dim in dims]) for axis, line in enumerate(lines)
    )
    axes = [_steps(line) for line in lines]
    return [each for each in axes if each is not None] if np.array_equal(total, offsets) and None not in axes else None


def _steps(line: Array) -> Steps | None:
    """Return an axis as nested steps of constant stride; None if it has no such form."""
    count = line.size
    if count == 1:
        return [(1, 0)]
    run = next((at for at in range(1, count) if line[at] - line[0] != at * (line[1] - line[0])), count)
    step = int(line[1] - line[0])
    if run == count:
        return [(count, step)]
    run = math.gcd(run, count)
    rows = line.reshape(-1, run)
    if run == 1 or not np.array_equal(rows - rows[:, :1], np.broadcast_to(rows[0] - rows[0, 0], rows.shape)):
        return None
    outer = _steps(rows[:, 0])
    return None if outer is None else [*outer, (run, step)]
