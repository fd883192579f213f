"""Values, packed for the page: exact where they are few, else the means of blocks; all within a budget of bytes.

A tile is a matrix of cells, each an element or the mean of a block of elements. The bits say what is no number: a block
with a NaN is a NaN, else one with an infinity is infinite, else one with an unwritten element is unwritten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.prints.summaries import Summary, as_matrix, as_numbers, blocks_of, counts_of

BUDGET = 3 << 20  # bytes of all tiles of a page; base64 makes a third more of them

_LEAST = 8  # rows and columns of a picture, however little there is for it
_UNWRITTEN_SINGLE = 0x7FC00001  # a NaN that says: nothing was ever written here
_UNWRITTEN_HALF = 0x7FC1
_KINDS = {"f4": 4, "b2": 2, "i4": 4, "u4": 4, "u1": 1, "i1": 1}


@dataclass(frozen=True, eq=False)
class Shown:
    """A value that the page shows: its elements (None: only what the summary keeps of them), and how much it weighs."""

    shape: tuple[int, ...]
    value: Array | None
    unwritten: Array | None = None
    reduced: Summary | None = None
    weight: int = 1

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)

    @property
    def exact_bytes(self) -> int:
        """Return the number of bytes that show every element."""
        if self.value is None:
            return 2 * int(_of(self.reduced).blocks.mean.size)
        return int(self.size * _KINDS[_kind(self.value, self.unwritten)])


def _of(value: Any) -> Any:
    assert value is not None
    return value


def shares(shown: Iterable[Shown], budget: int = BUDGET) -> list[int]:
    """Return how many bytes each value may take: all are shown exactly where that fits, else the large ones give way.

    What is left is shared by weight among those that need more.
    """
    wanted = list(shown)
    needs = np.array([each.exact_bytes for each in wanted], np.float64)
    weights = np.array([each.weight for each in wanted], np.float64)
    order = np.argsort(needs / np.maximum(weights, 1), kind="stable")
    granted = np.zeros(len(wanted), np.int64)
    left, weight = float(budget), float(weights.sum())
    for at in order.tolist():
        granted[at] = int(min(needs[at], left * weights[at] / weight)) if weight else 0
        left -= granted[at]
        weight -= weights[at]
    return [int(each) for each in granted]


def _kind(value: Array, unwritten: Array | None) -> str:
    """Return the form of exact elements: a dtype's own where that says it all, else float32."""
    dtype = value.dtype
    if dtype.names or unwritten is not None:
        return "u4" if dtype.names and dtype.itemsize <= 4 and unwritten is None else "f4"
    if dtype.kind in "iub":
        if dtype.itemsize == 1:
            return "i1" if dtype.kind == "i" else "u1"
        return "u4" if dtype.kind == "u" and dtype.itemsize == 4 else "i4"
    if dtype in (np.float32, np.float64, np.float16):
        return "f4"
    return "b2"  # bfloat16, and the float8 and float4 formats, which it holds exactly


def _halves(values: Array) -> Array:
    """float32 as bfloat16 bits, rounded to nearest; NaN stays one."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    rounded[np.isnan(values)] = 0x7FC0
    return rounded


class Pack:
    """The bytes of all tiles, one after the other; equal ones stand there once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._length = 0

    def joined(self) -> bytes:
        """All of them."""
        return b"".join(self._parts)

    def add(self, shown: Shown, share: int) -> list[Any]:
        """Return a tile: where its bytes begin, their form, cells down and across, elements down and across."""
        if shown.value is None:
            cells = _cells(_of(shown.reduced).blocks)
            rows = shown.shape[0] if shown.shape else 1
            return [self._put(cells.tobytes()), "b2", *cells.shape, rows, shown.size // max(1, rows)]
        matrix = as_matrix(shown.value)
        rows, columns = matrix.shape
        if shown.exact_bytes <= max(share, 2 * _LEAST * _LEAST):
            kind = _kind(shown.value, shown.unwritten)
            return [self._put(_exact(matrix, shown.unwritten, kind)), kind, rows, columns, rows, columns]
        down, across = _grid(rows, columns, share // 2)
        cells = _cells(blocks_of(shown.value, shown.unwritten, down, across, means_only=True))
        return [self._put(cells.tobytes()), "b2", *cells.shape, rows, columns]

    def _put(self, data: bytes) -> int:
        known = self._places.get(data)
        if known is not None:
            return known
        place = self._places[data] = self._length
        # Each begins at a multiple of 12: whole groups of base64 characters, and whole elements.
        padded = data + bytes(-len(data) % 12)
        self._parts.append(padded)
        self._length += len(padded)
        return place


def _grid(rows: int, columns: int, cells: int) -> tuple[int, int]:
    """Rows and columns of blocks: about as many as there may be, in about the matrix's own proportions."""
    cells = max(cells, _LEAST * _LEAST)
    ratio = min(4.0, max(0.25, rows / columns))
    down = max(1, min(rows, round(math.sqrt(cells * ratio))))
    across = max(1, min(columns, cells // down))
    return max(1, min(rows, cells // across)), across


def _exact(matrix: Array, unwritten: Array | None, kind: str) -> bytes:
    if matrix.dtype.names:
        codes = matrix.view(f"u{matrix.dtype.itemsize}")
        return codes.astype("<u4" if kind == "u4" else "<f4").tobytes()
    if kind == "b2":
        return _halves(as_numbers(matrix)).astype("<u2").tobytes()
    if kind == "f4":
        numbers = np.array(matrix, "<f4")
        if unwritten is not None:
            numbers.view("<u4")[as_matrix(unwritten)] = _UNWRITTEN_SINGLE
        return numbers.tobytes()
    return matrix.astype({"i4": "<i4", "u4": "<u4", "i1": "i1", "u1": "u1"}[kind]).tobytes()


def _cells(blocks: Any) -> Array:
    bits = _halves(blocks.mean)
    bits[blocks.unwritten] = _UNWRITTEN_HALF
    bits[blocks.inf] = np.where(blocks.mean[blocks.inf] < 0, 0xFF80, 0x7F80)
    bits[blocks.nan] = 0x7FC0
    return bits.astype("<u2")


def numbers_of(shown: Shown) -> list[Any]:
    """Minimum, maximum, mean, counts of NaN, infinite and unwritten elements; then where the first NaN (else infinite)
    element is and where the largest, as places in the flattened array, -1 where that is not known."""
    if shown.value is None:
        kept = _of(shown.reduced)
        return [kept.minimum, kept.maximum, kept.mean, kept.nan, kept.inf, kept.unwritten, -1, -1]
    numbers = as_numbers(as_matrix(shown.value)).reshape(-1)
    unwritten = None if shown.unwritten is None else shown.unwritten.reshape(-1)
    found = counts_of(numbers, unwritten)
    if found.finite == numbers.size > 0:
        return [found.low, found.high, found.total / found.finite, 0, 0, 0, -1, int(numbers.argmax())]
    known = True if unwritten is None else ~unwritten
    strange = (np.isnan(numbers) if found.nan else np.isinf(numbers)) & known
    counts = [found.nan, found.inf, found.unwritten, int(np.argmax(strange)) if found.nan or found.inf else -1]
    if not found.finite:
        return [None, None, None, *counts, -1]
    largest = int(np.argmax(np.where(np.isfinite(numbers) & known, numbers, -np.inf)))
    return [found.low, found.high, found.total / found.finite, *counts, largest]
