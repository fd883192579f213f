"""The place of a grid's elements: a tensor as it is, or a tensor of two dimensions with tile beside tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nkitools.chip.tensor import NkiTensor
from nkitools.language.grid_axis import Axis, Span


@dataclass(frozen=True, slots=True)
class InPlace:
    """A tensor whose own indices are those of the elements."""

    tensor: NkiTensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the elements along each dimension."""
        return self.tensor.shape

    def view(self, axes: Sequence[Axis]) -> NkiTensor | None:
        """Return the selected elements as one view; None if a dimension has no constant step."""
        key: list[int | slice] = []
        for axis in axes:
            span = axis.span
            if span is None:
                return None
            first, step, count = span
            if axis.dropped:
                key.append(first)
            else:
                key.append(slice(first, first + (count - 1) * step + 1, None if step == 1 else step))
        return self.tensor[tuple(key)]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A tensor in SBUF or PSUM with a row for each partition of a tile, which holds whole tiles one behind the other.

    The tiles follow one another in the order of their coordinates, the last one fastest. A tile at the end takes as
    much room as any other.
    """

    tensor: NkiTensor
    shape: tuple[int, ...]  # the elements along each dimension
    tile_shape: tuple[int, ...]  # of the last dimensions

    @staticmethod
    def sizes(shape: tuple[int, ...], tile_shape: tuple[int, ...]) -> tuple[int, int]:
        """Return the shape of the tensor that has room for a grid."""
        counts = _counts(shape, tile_shape)
        return tile_shape[0], math.prod(counts) * math.prod(tile_shape[1:])

    def view(self, axes: Sequence[Axis]) -> NkiTensor | None:
        """Return the selected elements as one view; None if one access pattern cannot reach them in order."""
        counts = _counts(self.shape, self.tile_shape)
        untiled = len(counts) - len(self.tile_shape)
        beside = math.prod(self.tile_shape[1:])  # elements from a tile to the next one in the last dimension
        pattern: list[list[int]] = []
        offset = 0
        for dim, axis in enumerate(axes):
            span = axis.span
            outer = math.prod(counts[dim + 1 :]) * beside
            if span is None or (dim < untiled and not axis.dropped):
                return None
            if dim < untiled:
                offset += span[0] * outer
                continue
            tile = self.tile_shape[dim - untiled]
            inner = self.tensor.shape[1] if dim == untiled else math.prod(self.tile_shape[dim - untiled + 1 :])
            stride = _stride(span, tile, inner, outer)
            if stride is None or (dim == untiled and span[0] // tile != (span[0] + span[2] - 1) // tile):
                return None
            offset += span[0] // tile * outer + span[0] % tile * inner
            pattern.append([stride, span[2]])
        return self.tensor.ap(pattern, offset)


def _stride(span: Span, tile: int, inner: int, outer: int) -> int | None:
    """Return the step between elements of a dimension whose tiles lie ``outer`` elements apart; None for no one step.

    ``inner`` is the step within a tile.
    """
    first, step, count = span
    if first // tile == (first + step * (count - 1)) // tile or outer == tile * inner:
        return step * inner
    places = [each // tile * outer + each % tile * inner for each in range(first, first + step * count, step)]
    steps = {later - earlier for earlier, later in pairwise(places)}
    return steps.pop() if len(steps) == 1 else None


def _counts(shape: tuple[int, ...], tile_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tiles along each dimension; an untiled dimension counts its elements."""
    sizes = (1,) * (len(shape) - len(tile_shape)) + tile_shape
    return tuple(-(-extent // size) for extent, size in zip(shape, sizes, strict=True))
