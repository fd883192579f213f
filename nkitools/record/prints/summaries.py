"""A large array in few numbers: what is not kept by value is kept as this."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nkitools.chip.array_text import corners_of as corners_of
from nkitools.chip.numerics import Array

_CELLS = 32  # rows and columns of the coarse picture, at most


@dataclass(frozen=True, eq=False)
class Blocks:
    """An array by blocks: of each the smallest, the mean and the largest finite element, and what else is in it.

    ``rows`` and ``columns`` say where the blocks begin, in the array as a matrix (`as_matrix`); numbers are float32,
    NaN where a block has no finite element. ``nan``, ``inf`` and ``unwritten`` say whether a block has such elements.
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
    """Minimum, maximum and mean of the finite elements (None where there are none), and counts of the others.

    Unwritten elements count as nothing else. ``corners``: up to three elements from each end of each axis. ``blocks``:
    the coarse picture, of at most 32 x 32 blocks.
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


def as_matrix(values: Array) -> Array:
    """Return the array in two dimensions: the first one (on chip the partitions) by all others."""
    return values.reshape(values.shape[0], -1) if values.ndim else values.reshape(1, 1)


def as_numbers(values: Array) -> Array:
    """Return the elements as numbers for NumPy: float32 (float64 as it is), of packed dtypes the codes."""
    if values.dtype.names:
        values = values.view(f"u{values.dtype.itemsize}")
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def summary_of(values: Array, unwritten: Array | None = None, *, means_only: bool = False) -> Summary:
    """Return the summary of an array, ``unwritten`` being a mask of the elements that hold nothing.

    ``means_only``: of the blocks, as `blocks_of` says.
    """
    if unwritten is None:
        with np.errstate(all="ignore"):
            plain = _plain_summary(values, means_only=means_only)
        if plain is not None:
            return plain
    with np.errstate(all="ignore"):  # what is no number is what is counted here
        numbers = as_numbers(values)
        nan, finite = np.isnan(numbers), np.isfinite(numbers)
        infinite = ~(finite | nan)
        if unwritten is not None:
            nan, infinite, finite = nan & ~unwritten, infinite & ~unwritten, finite & ~unwritten
        count = int(np.count_nonzero(finite))
        total = float(np.sum(numbers, where=finite, dtype=np.float64))
    blocks = blocks_of(values, unwritten, _CELLS, _CELLS)
    return Summary(
        minimum=float(np.nanmin(blocks.low)) if count else None,
        maximum=float(np.nanmax(blocks.high)) if count else None,
        mean=total / count if count else None,
        nan=int(np.count_nonzero(nan)),
        inf=int(np.count_nonzero(infinite)),
        unwritten=0 if unwritten is None else int(np.count_nonzero(unwritten)),
        size=values.size,
        corners=corners_of(values),
        blocks=blocks,
    )


def _plain_summary(values: Array, *, means_only: bool) -> Summary | None:
    """Return the same at less cost where every element is a finite number; None where one is not."""
    numbers = as_numbers(values)
    total = float(np.sum(numbers, dtype=np.float64))
    if not values.size or not math.isfinite(total):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    blocks = blocks_of(values, None, _CELLS, _CELLS, means_only=means_only)
    return Summary(low, high, total / values.size, 0, 0, 0, values.size, corners_of(values), blocks)


def starts_of(size: int, blocks: int) -> Array:
    """Return where blocks of (nearly) equal size begin."""
    count = max(1, min(size, blocks))
    return np.arange(count) * size // count


def blocks_of(values: Array, unwritten: Array | None, rows: int, columns: int, *, means_only: bool = False) -> Blocks:
    """Return the array by at most so many rows and columns of blocks.

    ``means_only``: the extremes, which take most of the time, are not needed; they may be the means then.
    """
    numbers = as_numbers(as_matrix(values))
    down, across, sizes = _cut(*numbers.shape, rows, columns)
    missing = None if unwritten is None else as_matrix(unwritten)
    with np.errstate(all="ignore"):
        total = _reduced(np.add, numbers, down, across)
        plain = missing is None and bool(np.isfinite(total).all())
        if plain:
            none = np.zeros(total.shape, np.bool_)
            mean = _single(total / sizes)
            if means_only:
                return Blocks(down, across, mean, mean, mean, none, none, none)
            low, high = _reduced(np.minimum, numbers, down, across), _reduced(np.maximum, numbers, down, across)
            return Blocks(down, across, _single(low), mean, _single(high), none, none, none)
        return _careful_blocks(numbers, missing, down, across)


@lru_cache(maxsize=256)
def _cut(rows: int, columns: int, down: int, across: int) -> tuple[Array, Array, Array]:
    """Return where the blocks of a matrix begin, down and across, and how many elements each has."""
    first, second = starts_of(rows, down), starts_of(columns, across)
    sizes = np.outer(np.diff(first, append=rows), np.diff(second, append=columns))
    for each in (first, second, sizes):
        each.flags.writeable = False  # many blocks share them
    return first, second, sizes


def _careful_blocks(numbers: Array, missing: Array | None, down: Array, across: Array) -> Blocks:
    """Return the same where some elements are no numbers."""
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
    return Blocks(
        down,
        across,
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
