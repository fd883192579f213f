"""Packs values for the page within a budget of bytes: exact values if they are few, else extremes of blocks.

A tile is a matrix of cells, each an element or a block of elements. For a block the least and the largest element are
kept, rounded outwards to bfloat16, so that no outlier is lost. A block with NaN keeps their number; otherwise one with
an infinity is infinite, and one with an unwritten element unwritten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.prints.summaries import Blocks, Summary, as_matrix, as_numbers, blocks_of, counts_of, starts_of
from nkitools.report.page.packed_columns import planes

BUDGET = 6 << 20  # bytes of all tiles of a page, before they are compressed

FORMS = ("none", "f4", "b2", "i4", "u4", "u1", "i1", "f8", "m2")  # how the cells of a tile are stored
EXACT, ROUNDED, BLOCKS, LEFT_OUT = range(4)  # what the cells of a tile are

_SIZES = {"f4": 4, "b2": 2, "i4": 4, "u4": 4, "u1": 1, "i1": 1, "f8": 8}
_CELL = 4  # bytes of a block: its extremes
_LEAST = 256  # bytes of a picture, however little there is for it
_FIRST = 0.75  # of the budget may go to what comes first
_UNWRITTEN_DOUBLE = 0x7FF8000000000001
_UNWRITTEN_SINGLE = 0x7FC00001  # a NaN that says: nothing was ever written here
_UNWRITTEN_HALF = 0x7FC1
_NAN_HALF, _INF_HALF = 0x7FC0, 0x7F80
_WHOLE_DOUBLE = 1 << 53


@dataclass(eq=False)
class Shown:
    """A value that the page shows."""

    shape: tuple[int, ...]
    value: Array | None  # its elements; None: only what the summary keeps of them
    unwritten: Array | None = None  # a mask of the elements that hold nothing
    reduced: Summary | None = None
    weight: int = 1  # how much of the budget it gets beside others
    comes_first: bool = False  # whether it is shown exactly before others are
    is_rounded: bool = False  # whether its elements were rounded before
    line: tuple[Any, ...] = ()  # what wrote it, turn after turn

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)

    @cached_property
    def form(self) -> str:
        """Return the form in which every element is exact."""
        return "m2" if self.value is None else _form(self.value, self.unwritten)

    @cached_property
    def exact_bytes(self) -> int:
        """Return the number of bytes that show every element."""
        if self.value is None:
            return _CELL * int(_of(self.reduced).blocks.low.size)
        return int(self.size * _SIZES[self.form])


def _of(value: Any) -> Any:
    assert value is not None
    return value


def shares(shown: Sequence[Shown], budget: int = BUDGET) -> list[int]:
    """Return the number of bytes for each value: all are exact if the budget suffices, else large ones become pictures.

    First values get what they need. If there is not enough for a picture of each other value, only every n-th turn of a
    line gets one. The rest is shared by weight among values that need more.
    """
    granted = [0] * len(shown)
    left, reserved = budget, int(budget * _FIRST)
    for at, each in enumerate(shown):
        if each.comes_first and each.exact_bytes <= min(reserved, left):
            granted[at] = each.exact_bytes
            left -= each.exact_bytes
            reserved -= each.exact_bytes
    others = [at for at in _kept(shown, left) if not granted[at] and shown[at].exact_bytes]
    for at, share in zip(others, _shared([shown[at] for at in others], left), strict=True):
        granted[at] = share
    return granted


def _kept(shown: Sequence[Shown], budget: int) -> list[int]:
    """Return the indices of the values that get a picture."""
    needed = sum(min(each.exact_bytes, _LEAST) for each in shown)
    every = -(-needed // max(1, budget))
    if every <= 1:
        return list(range(len(shown)))
    turns: dict[tuple[Any, ...], int] = {}
    kept = []
    for at, each in enumerate(shown):
        turn = turns[each.line] = turns.get(each.line, -1) + 1
        if turn % every == 0 or each.weight > 1:
            kept.append(at)
    return kept


def _shared(shown: Sequence[Shown], budget: int) -> list[int]:
    needs = np.array([each.exact_bytes for each in shown], np.float64)
    weights = np.array([each.weight for each in shown], np.float64)
    order = np.argsort(needs / np.maximum(weights, 1), kind="stable")
    granted = np.zeros(len(shown), np.int64)
    left, weight = float(budget), float(weights.sum())
    for at in order.tolist():
        granted[at] = int(min(needs[at], left * weights[at] / weight)) if weight else 0
        left -= granted[at]
        weight -= weights[at]
    return [int(each) for each in granted]


def _form(value: Array, unwritten: Array | None) -> str:
    """Return the smallest form that holds every element."""
    dtype = value.dtype
    if dtype.names:
        return "u4" if dtype.itemsize <= 4 and unwritten is None else "f8"
    if dtype.kind in "iub":
        if unwritten is not None:
            return "f4" if dtype.itemsize <= 2 else "f8"
        if dtype.itemsize == 1:
            return "i1" if dtype.kind == "i" else "u1"
        return "f8" if dtype.itemsize == 8 else "u4" if dtype.kind == "u" else "i4"
    if dtype == np.float64:
        with np.errstate(all="ignore"):
            return "f4" if np.array_equal(value, value.astype(np.float32), equal_nan=True) else "f8"
    if dtype in (np.float32, np.float16) or unwritten is not None:
        return "f4"
    return "b2"  # bfloat16, and the float8 and float4 formats, which it holds exactly


class Pack:
    """The bytes of all tiles, one after the other; equal ones stand there once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._length = 0

    def joined(self) -> bytes:
        """All of them."""
        return b"".join(self._parts)

    def add(self, shown: Shown, share: int) -> list[int]:
        """Return a tile as a row: first byte, form, kind of cells, cells down and across, elements down and across."""
        rows, columns = _sizes(shown)
        if not share and shown.size:
            return [0, FORMS.index("none"), LEFT_OUT, 0, 0, rows, columns]
        if shown.value is None:
            blocks = _of(shown.reduced).blocks
            return self._blocks(_coarser(blocks, share // _CELL) if blocks.low.size else blocks, None, rows, columns)
        if shown.exact_bytes <= share or not shown.size:
            quality = ROUNDED if shown.is_rounded or _is_beyond(shown.value) else EXACT
            cells = _exact(as_matrix(shown.value), shown.unwritten, shown.form)
            return [self._put(planes(cells)), FORMS.index(shown.form), quality, rows, columns, rows, columns]
        down, across = _grid(rows, columns, share // _CELL)
        blocks = blocks_of(shown.value, shown.unwritten, down, across)
        return self._blocks(blocks, _nan_counts(shown.value, shown.unwritten, blocks), rows, columns)

    def _blocks(self, blocks: Blocks, nans: Array | None, rows: int, columns: int) -> list[int]:
        cells = _cells(blocks, nans)
        return [self._put(planes(cells)), FORMS.index("m2"), BLOCKS, *blocks.low.shape, rows, columns]

    def _put(self, data: bytes) -> int:
        known = self._places.get(data)
        if known is not None:
            return known
        place = self._places[data] = self._length
        self._parts.append(data)
        self._length += len(data)
        return place


def _sizes(shown: Shown) -> tuple[int, int]:
    rows = shown.shape[0] if shown.shape else 1
    return rows, shown.size // max(1, rows)


def _is_beyond(value: Array) -> bool:
    """Return whether there are integers that a float64 does not hold."""
    return value.dtype.kind in "iu" and value.itemsize == 8 and bool((np.abs(value.astype("f8")) > _WHOLE_DOUBLE).any())


def _grid(rows: int, columns: int, cells: int) -> tuple[int, int]:
    """Rows and columns of blocks: about as many as there may be, in about the matrix's own proportions."""
    cells = max(cells, 1)
    ratio = min(4.0, max(0.25, rows / columns))
    down = max(1, min(rows, math.floor(math.sqrt(cells * ratio))))
    across = max(1, min(columns, cells // down))
    return max(1, min(rows, cells // across)), across


def _exact(matrix: Array, unwritten: Array | None, form: str) -> Array:
    if matrix.dtype.names:
        matrix = matrix.view(f"u{matrix.dtype.itemsize}")
    if form == "b2":
        halves = (np.ascontiguousarray(as_numbers(matrix), np.float32).view(np.uint32) >> 16).astype("<u2")
        halves[halves == _UNWRITTEN_HALF] = _NAN_HALF
        return halves
    if form not in ("f4", "f8"):
        return matrix.astype({"i4": "<i4", "u4": "<u4", "i1": "i1", "u1": "u1"}[form])
    numbers = np.array(matrix, f"<{form}")
    bits, code = numbers.view(f"<u{form[1]}"), _UNWRITTEN_SINGLE if form == "f4" else _UNWRITTEN_DOUBLE
    numbers[bits == code] = np.nan
    if unwritten is not None:
        bits[as_matrix(unwritten)] = code
    return numbers


def _outwards(values: Array, *, up: bool) -> Array:
    """Return float32 as bfloat16 bits, rounded up or down."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    away = (bits >> 31 == 0) if up else (bits >> 31 == 1)
    return np.asarray(((bits >> 16) + (((bits & 0xFFFF) != 0) & away)).astype(np.uint16))


def rounded_outwards(values: Array, *, up: bool) -> Array:
    """Return numbers as float32 with the digits of bfloat16, rounded up or down."""
    with np.errstate(over="ignore"):
        return (_outwards(values.astype(np.float32), up=up).astype(np.uint32) << 16).view(np.float32)


def _coarser(blocks: Blocks, cells: int) -> Blocks:
    """Return blocks joined to at most ``cells``; halves of rows and columns begin where the page expects them."""
    down, across = blocks.low.shape
    while down * across > max(1, cells):
        down, across = (down // 2, across) if down >= across else (down, across // 2)
    rows, columns = starts_of(blocks.low.shape[0], down), starts_of(blocks.low.shape[1], across)

    def joined(join: np.ufunc, values: Array) -> Array:
        return np.asarray(join.reduceat(join.reduceat(values, columns, axis=1), rows, axis=0))

    flags = (joined(np.logical_or, each) for each in (blocks.nan, blocks.inf, blocks.unwritten))
    extremes = joined(np.fmin, blocks.low), joined(np.fmax, blocks.mean), joined(np.fmax, blocks.high)
    return Blocks(blocks.rows[rows], blocks.columns[columns], *extremes, *flags)


def _cells(blocks: Blocks, nans: Array | None) -> Array:
    """Return the extremes of blocks, the lower ones first; of a block with a NaN its code and how many there are."""
    low, high = _outwards(blocks.low, up=False), _outwards(blocks.high, up=True)
    low[blocks.unwritten] = _UNWRITTEN_HALF
    low[blocks.inf] = _INF_HALF
    low[blocks.nan] = _NAN_HALF
    if blocks.nan.any():
        high[blocks.nan] = 0 if nans is None else np.minimum(nans, 0xFFFF)[blocks.nan]
    return np.stack([low, high]).astype("<u2")


def _nan_counts(value: Array, unwritten: Array | None, blocks: Blocks) -> Array | None:
    if not blocks.nan.any():
        return None
    nans = np.isnan(as_numbers(as_matrix(value)))
    if unwritten is not None:
        nans &= ~as_matrix(unwritten)
    across = np.add.reduceat(nans.astype(np.int64), blocks.columns, axis=1)
    return np.asarray(np.add.reduceat(across, blocks.rows, axis=0))


def numbers_of(shown: Shown) -> list[Any]:
    """Return minimum, maximum, mean, the counts of NaN, infinite and unwritten elements, then two flat indices: of the
    first NaN (else infinite) element and of the largest; -1 if unknown.
    """
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
