"""The computation of a choice: the mask of a predicate, the values that it selects, and their maximum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.numerics import Array, through_float32, to_float32, working
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.arithmetic import column
from nkitools.engines.cast_on_write import constant, like, put
from nkitools.engines.operators import OPERATORS, Operator
from nkitools.issue.plan import Value

MAXIMUM = OPERATORS["maximum"]
_INT32 = np.iinfo(np.int32)

Selecting = Callable[[Array, Array, Array, Any], Any]  # (destination, mask, on_true, on_false)


def predicate_mask(reverse: bool, shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return a function from a predicate to its mask: elements that are not 0, or with ``reverse`` that are 0."""
    hold = np.equal if reverse else np.not_equal

    def mask(predicate: Array) -> Array:
        return like(hold(predicate, 0), shape)

    return mask


def affine_mask(
    comparison: Operator, steps: list[tuple[int, int]], across: int, shape: tuple[int, ...]
) -> Callable[[int], Array]:
    """Return the predicate for an offset, made each time: a row and a column are kept, and no mask an offset."""
    pattern = np.asarray(0, np.int64)
    for step, count in steps:
        pattern = pattern[..., None] + step * np.arange(count, dtype=np.int64)
    pattern = pattern.reshape(1, -1)
    downward = across * np.arange(shape[0], dtype=np.int64)[:, None]
    sides = (downward.min(), downward.max())
    compare = comparison.compute

    def mask(first: int) -> Array:
        row = pattern + first
        edges = (row.min(), row.max())
        extremes = [edge + side for edge in edges for side in sides]
        wraps = any(not _INT32.min <= value <= _INT32.max for value in (*extremes, *edges, *(-side for side in sides)))
        left = (row + downward if wraps else row).astype(np.int32)
        right = np.int32(0) if wraps else (-downward).astype(np.int32)
        found: Array = compare(left, right).reshape(shape)
        return found

    return mask


def range_mask(
    comparisons: tuple[Operator, ...], start: int, shape: tuple[int, ...]
) -> Callable[[Array, Array], Array]:
    """Return the predicate that an element's index, counted from ``start`` in a partition, lies between two bounds."""
    count = math.prod(shape[1:])
    indices = np.arange(start, start + count, dtype=np.float32)[None, :]
    compare0, compare1 = (comparison.compute for comparison in comparisons)

    def mask(first: Array, second: Array) -> Array:
        inside = compare0(indices, first.reshape(-1, 1))
        inside &= compare1(indices, second.reshape(-1, 1))
        found: Array = inside.reshape(shape)
        return found

    return mask


def selecting(dst: NkiTensor, on_true: NkiTensor) -> Selecting:
    """``on_true`` where the mask holds, else ``on_false`` (a number or column): equal dtypes keep their bits.

    All is copied first and then overwritten, so that ``on_true`` may be the destination; the mask may not.
    """
    dtype, shape = dst.dtype, on_true.shape
    same = dtype is on_true.dtype
    direct = same and dst.shape == shape and dst.layout.injective

    def select(destination: Array, mask: Array, on_true: Array, on_false: Value) -> None:
        other = _other(on_false, dtype, len(shape))
        if direct:
            np.copyto(destination, on_true)
            np.copyto(destination, other, where=~mask)
            return
        values = on_true if same else through_float32(on_true, dtype)
        np.copyto(destination, np.where(mask, values, other).reshape(destination.shape))

    return select


def _other(on_false: Value, dtype: DType, ndim: int) -> Any:
    """Return the number or column of ``on_false`` as elements of ``dtype``, in memory of its own."""
    if isinstance(on_false, np.ndarray):
        return column(np.array(through_float32(on_false, dtype)), ndim)
    return constant(np.float32(on_false), dtype)


def selecting_in_float32(dst: NkiTensor, on_true: NkiTensor) -> Selecting:
    """Return the same in float32, cast once on write; returns the float32 values."""
    dtype, shape = dst.dtype, on_true.shape
    direct = dtype is float32 and dst.shape == shape and dst.layout.injective

    def select(destination: Array, mask: Array, on_true: Array, on_false: Value) -> Array:
        other = _other(on_false, float32, len(shape))
        out = destination if direct else np.empty(shape, working(destination, on_true))
        np.copyto(out, to_float32(on_true))
        np.copyto(out, other, where=~mask)
        if not direct:
            put(destination, out, dtype)
        return out

    return select
