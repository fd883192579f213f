"""Summaries of large arrays, kept in place of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nkitools.chip.array_text import corners_of as corners_of
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass, replace

_CELLS = 32  # rows and columns of the coarse picture, at most
_AT_ONCE = 1 << 18  # elements that are read together, so that 4 GiB cost no further 4 GiB


@dataclass(frozen=True, eq=False)
class Blocks:
    """An array by blocks: the smallest, the mean and the largest finite element of each.

    ``rows`` and ``columns``: the first rows and columns of the blocks in the array as a matrix (`as_matrix`). Numbers
    are float32, NaN for a block without finite elements. ``nan``, ``inf``, ``unwritten``: whether a block has such
    elements.
    """

    rows: Array
    columns: Array
    low: Array
    mean: Array
    high: Array
    nan: Array
    inf: Array
    unwritten: Array


@dataclass(frozen=True, eq=False)
class Summary:
    """Minimum, maximum and mean of the finite elements (None if there are none), and counts of the others.

    Unwritten elements have only their own count. ``corners``: up to three elements from each end of each axis.
    ``blocks``: the coarse picture, of at most 32 x 32 blocks; empty in a summary of numbers only.
    """

    minimum: float | None
    maximum: float | None
    mean: float | None
    nan: int
    inf: int
    unwritten: int
    size: int
    corners: Array
    blocks: Blocks


class Counts(NamedTuple):
    """The smallest, the largest and the sum of finite elements, and the counts of each kind of element."""

    low: float  # inf if there is no finite element
    high: float
    total: float
    finite: int
    nan: int
    inf: int
    unwritten: int


def as_matrix(values: Array) -> Array:
    """Return the array in two dimensions: the first one (on chip the partitions) by all others."""
    if not values.ndim:
        return values.reshape(1, 1)
    return values.reshape(values.shape[0], values.size // max(1, values.shape[0]))


def as_numbers(values: Array) -> Array:
    """Return the elements as numbers that NumPy reckons with exactly, of packed dtypes the codes."""
    if values.dtype.names:
        values = values.view(f"u{values.dtype.itemsize}")
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float64 if values.dtype.kind in "iub" else np.float32)


def counts_of(numbers: Array, unwritten: Array | None = None) -> Counts:
    """Return the counts of some numbers; ``unwritten`` is a mask of the elements that were never written."""
    with np.errstate(all="ignore"):  # what is no number is what is counted here
        total = float(np.sum(numbers, dtype=np.float64))
        if unwritten is None and numbers.size and math.isfinite(total):
            low, high = float(numbers.min()), float(numbers.max())
            if math.isfinite(low) and math.isfinite(high):
                return Counts(low, high, total, numbers.size, 0, 0, 0)
        known = numbers if unwritten is None else numbers[~unwritten]
        some, nan = known[np.isfinite(known)], int(np.count_nonzero(np.isnan(known)))
        low, high = float(some.min(initial=np.inf)), float(some.max(initial=-np.inf))
        total = float(np.sum(some, dtype=np.float64))
        return Counts(low, high, total, some.size, nan, known.size - some.size - nan, numbers.size - known.size)


_NO_BLOCKS = Blocks(
    *(np.zeros(0, np.int64) for _ in range(2)),
    *(np.zeros((0, 0), np.float32) for _ in range(3)),
    *(np.zeros((0, 0), np.bool_) for _ in range(3)),
)


def numbers_only(values: Array, unwritten: Array | None = None) -> Summary:
    """Return the summary of an array without its picture, which takes most of the memory of a summary."""
    return replace(summary_of(values, unwritten, means_only=True), blocks=_NO_BLOCKS)


def summary_of(values: Array, unwritten: Array | None = None, *, means_only: bool = False) -> Summary:
    """Return the summary of an array; ``unwritten`` is a mask of the elements that were never written.

    The array is read in parts, without a copy of it. A dimension that repeats one element (stride 0) is read once.
    ``means_only``: for the blocks, as in `blocks_of`.
    """
    seen = np.atleast_1d(_once(values) if unwritten is None else values)
    hidden = None if unwritten is None else np.atleast_1d(unwritten)
    repeats = values.size // seen.size if seen.size else 1
    rows, columns = seen.shape[0], math.prod(seen.shape[1:])
    down, across, sizes = _cut(rows, columns, _CELLS, _CELLS)
    pictures = [np.full(sizes.shape, np.nan, np.float32) for _ in range(3)]
    pictures += [np.zeros(sizes.shape, np.bool_) for _ in range(3)]
    counts: list[Counts] = []
    for above, some in _stretches(down, rows, columns):
        slab = as_matrix(seen[some])
        gone = None if hidden is None else as_matrix(hidden[some])
        for beside, part in _stretches(across, columns, len(slab)):
            numbers, missing = as_numbers(slab[:, part]), None if gone is None else gone[:, part]
            counts.append(counts_of(numbers, missing))
            cut = (down[above] - some.start, across[beside] - part.start, sizes[above, beside])
            for picture, found in zip(pictures, _pictures(numbers, missing, *cut, means_only=means_only), strict=True):
                picture[above, beside] = found
    finite = sum(each.finite for each in counts)
    return Summary(
        minimum=min(each.low for each in counts) if finite else None,
        maximum=max(each.high for each in counts) if finite else None,
        mean=sum(each.total for each in counts) / finite if finite else None,
        nan=sum(each.nan for each in counts) * repeats,
        inf=sum(each.inf for each in counts) * repeats,
        unwritten=sum(each.unwritten for each in counts),
        size=values.size,
        corners=corners_of(values),
        blocks=Blocks(down, across, *pictures),
    )


def _once(values: Array) -> Array:
    """Return the array without repetitions of its elements."""
    repeated = [size > 1 and stride == 0 for size, stride in zip(values.shape, values.strides, strict=True)]
    return values[tuple(slice(0, 1) if each else slice(None) for each in repeated)]


def _stretches(starts: Array, size: int, others: int) -> Iterator[tuple[slice, slice]]:
    """Yield which blocks of an axis are read together, and their elements; ``others``: of the other axis."""
    several = max(1, _AT_ONCE * starts.size // max(1, size * others))
    ends = [*starts.tolist(), size]
    for first in range(0, starts.size if size else 0, several):
        last = min(first + several, starts.size)
        yield slice(first, last), slice(ends[first], ends[last])


def starts_of(size: int, blocks: int) -> Array:
    """Return the first elements of blocks of (nearly) equal size."""
    count = max(1, min(size, blocks))
    return np.arange(count) * size // count


def blocks_of(values: Array, unwritten: Array | None, rows: int, columns: int, *, means_only: bool = False) -> Blocks:
    """Return the array by at most so many rows and columns of blocks.

    ``means_only``: the extremes, which take most of the time, are not needed; they may be the means then.
    """
    numbers = as_numbers(as_matrix(values))
    down, across, sizes = _cut(*numbers.shape, rows, columns)
    missing = None if unwritten is None else as_matrix(unwritten)
    return Blocks(down, across, *_pictures(numbers, missing, down, across, sizes, means_only=means_only))


def _pictures(
    numbers: Array, missing: Array | None, down: Array, across: Array, sizes: Array, *, means_only: bool
) -> tuple[Array, ...]:
    """Return the fields of `Blocks` that follow its rows and columns."""
    with np.errstate(all="ignore"):
        total = _reduced(np.add, numbers, down, across)
        if missing is not None or not np.isfinite(total).all():
            return _careful_pictures(numbers, missing, down, across)
        none, mean = np.zeros(total.shape, np.bool_), _single(total / sizes)
        if means_only:
            return mean, mean, mean, none, none, none
        low, high = _reduced(np.minimum, numbers, down, across), _reduced(np.maximum, numbers, down, across)
        return _single(low), mean, _single(high), none, none, none


@lru_cache(maxsize=256)
def _cut(rows: int, columns: int, down: int, across: int) -> tuple[Array, Array, Array]:
    """Return the first rows and columns of the blocks of a matrix, and the number of elements of each block."""
    first, second = starts_of(rows, down), starts_of(columns, across)
    sizes = np.outer(np.diff(first, append=rows), np.diff(second, append=columns))
    for each in (first, second, sizes):
        each.flags.writeable = False  # many blocks share them
    return first, second, sizes


def _careful_pictures(numbers: Array, missing: Array | None, down: Array, across: Array) -> tuple[Array, ...]:
    """Return the same fields for an array in which some elements are NaN, infinite or missing."""
    counts = np.isfinite(numbers) if missing is None else np.isfinite(numbers) & ~missing
    nan, infinite = np.isnan(numbers), np.isinf(numbers)
    if missing is None:
        unwritten: Array = np.zeros((down.size, across.size), np.bool_)
    else:
        nan, infinite = nan & ~missing, infinite & ~missing
        unwritten = _reduced(np.logical_or, missing, down, across)
    several = _reduced(np.add, counts.astype(np.int64), down, across)
    total = _reduced(np.add, np.where(counts, numbers, 0).astype(np.float64), down, across)
    low = _reduced(np.minimum, np.where(counts, numbers, np.inf), down, across)
    high = _reduced(np.maximum, np.where(counts, numbers, -np.inf), down, across)
    nothing = several == 0
    low[nothing] = high[nothing] = np.nan
    return (
        _single(low),
        _single(np.where(nothing, np.nan, total / several)),
        _single(high),
        _reduced(np.logical_or, nan, down, across),
        _reduced(np.logical_or, infinite, down, across),
        unwritten,
    )


def _reduced(operation: np.ufunc, values: Array, down: Array, across: Array) -> Array:
    # Where every block is one element there is nothing to do.
    if across.size < values.shape[1]:
        values = operation.reduceat(values, across, axis=1)
    if down.size < values.shape[0]:
        values = operation.reduceat(values, down, axis=0)
    return np.array(values)


def _single(values: Array) -> Array:
    return values.astype(np.float32)
