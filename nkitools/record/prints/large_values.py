"""Values too large to copy: their summary, read a block at a time, so that 4 GiB cost no further 4 GiB."""

from __future__ import annotations

import itertools
import math

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.prints.summaries import Blocks, Summary, corners_of, starts_of

_CELLS = 32  # rows and columns of blocks, as in `Summary.blocks`


def summary_by_blocks(values: Array, missing: Array | None = None) -> Summary:
    """Return what `summary_of` says of an array, without a copy of it; ``missing`` are the elements that hold nothing.

    A dimension that repeats one element (stride 0) is looked at once, whatever its size.
    """
    seen, hidden, repeats = _once(values, missing)
    rows = starts_of(seen.shape[0] if seen.ndim else 1, _CELLS)
    columns = starts_of(math.prod(seen.shape[1:]), _CELLS)
    counts = _Counts(rows.size, columns.size)
    for down, (first, last) in enumerate(_spans(rows, seen.shape[0] if seen.ndim else 1)):
        slab = _as_rows(seen, first, last)
        gone = None if hidden is None else _as_rows(hidden, first, last)
        for across, (start, end) in enumerate(_spans(columns, slab.shape[1])):
            part = None if gone is None else gone[:, start:end]
            counts.add(down, across, slab[:, start:end], part)
    return counts.summary(values, Blocks(rows, columns, *counts.pictures()), repeats)


def _once(values: Array, missing: Array | None) -> tuple[Array, Array | None, int]:
    """Return the array without repetitions of its elements, and how often each stands in it."""
    if missing is not None:
        return values, missing, 1
    repeated = [size > 1 and stride == 0 for size, stride in zip(values.shape, values.strides, strict=True)]
    seen = values[tuple(slice(0, 1) if each else slice(None) for each in repeated)]
    return seen, None, values.size // seen.size if seen.size else 1


def _spans(starts: Array, size: int) -> list[tuple[int, int]]:
    bounds = [*map(int, starts), size]
    return list(itertools.pairwise(bounds))


def _as_rows(values: Array, first: int, last: int) -> Array:
    return values[first:last].reshape(last - first, -1) if values.ndim else values.reshape(1, 1)


def _exact(values: Array) -> Array:
    """Return the elements as numbers that NumPy reckons with: integers in float64, of packed dtypes the codes."""
    if values.dtype.names:
        values = values.view(f"u{values.dtype.itemsize}")
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float64 if values.dtype.kind in "iub" else np.float32)


class _Counts:
    """The counts of the blocks seen so far."""

    def __init__(self, rows: int, columns: int) -> None:
        shape = (rows, columns)
        self.low, self.mean, self.high = (np.full(shape, np.nan, np.float32) for _ in range(3))
        self.has_nan, self.has_infinite, self.has_missing = (np.zeros(shape, np.bool_) for _ in range(3))
        self.total = 0.0
        self.finite = self.nan = self.infinite = self.missing = 0
        self.least, self.most = math.inf, -math.inf

    def add(self, down: int, across: int, block: Array, missing: Array | None) -> None:
        """Look at one block."""
        numbers = _exact(block if missing is None else block[~missing])
        finite = np.isfinite(numbers)
        count = int(np.count_nonzero(finite))
        if count < numbers.size:
            nan = int(np.count_nonzero(np.isnan(numbers)))
            self.nan += nan
            self.infinite += numbers.size - count - nan
            self.has_nan[down, across] = nan > 0
            self.has_infinite[down, across] = numbers.size - count > nan
            numbers = numbers[finite]
        gone = block.size - finite.size
        self.missing += gone
        self.has_missing[down, across] = gone > 0
        if count:
            total = float(np.sum(numbers, dtype=np.float64))
            low, high = float(numbers.min()), float(numbers.max())
            self.low[down, across], self.mean[down, across], self.high[down, across] = low, total / count, high
            self.total += total
            self.finite += count
            self.least, self.most = min(self.least, low), max(self.most, high)

    def pictures(self) -> tuple[Array, ...]:
        """Return the fields of `Blocks` behind its rows and columns."""
        return self.low, self.mean, self.high, self.has_nan, self.has_infinite, self.has_missing

    def summary(self, values: Array, blocks: Blocks, repeats: int) -> Summary:
        """Return the numbers of all blocks; every element seen stands for as many as it is repeated."""
        some = self.finite > 0
        return Summary(
            minimum=self.least if some else None,
            maximum=self.most if some else None,
            mean=self.total / self.finite if some else None,
            nan=self.nan * repeats,
            inf=self.infinite * repeats,
            unwritten=self.missing * repeats,
            size=values.size,
            corners=corners_of(values),
            blocks=blocks,
        )
