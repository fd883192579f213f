"""Small pictures of tensors for findings: which elements are concerned, in a few lines of signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.rules.finding import MIXED, Picture

Signs = Mapping[int, tuple[str, str]]  # a sign and its meaning for each code

UNWRITTEN: Signs = {0: (".", "written"), 1: ("#", "never written")}
LEFT_OUT: Signs = {0: (".", "written"), 1: ("#", "left out by the mask")}
OUTSIDE: Signs = {0: (".", "in bounds"), 1: ("#", "out of bounds")}
REPEATED: Signs = {0: (".", "named once"), 1: ("#", "named again")}
LOST: Signs = {0: (".", "held"), 1: ("#", "saturated")}
INEXACT: Signs = {0: (".", "exact"), 1: ("#", "low bits lost")}
BEYOND: Signs = {0: (".", "in range"), 1: ("#", "outside")}
ORIGINS: Signs = {0: (".", "as it was"), 1: ("N", "becomes NaN"), 2: ("I", "becomes infinite")}

_LINES = 8
_SIGNS = 32
_STRIP = 64


def picture_of(codes: Array, signs: Signs, across: str = "") -> Picture:
    """Return a picture of a tensor: the sign of each element by its code (a mask has the codes 0 and 1).

    Dimension 0 is vertical and the others are horizontal; a single dimension is horizontal. Equal rows share a line if
    eight lines are enough. ``across`` labels the horizontal axis.
    """
    rows = codes.shape[0] if codes.ndim else 1
    flat = codes.reshape(rows, -1)
    if 1 in flat.shape:
        line = _lines(flat.reshape(1, -1), [0], _even(codes.size, _STRIP), signs)
        return Picture((line[0],), (), codes.size, across or ("rows" if rows > 1 else "elements"), _meant(line, signs))
    downs = _alike(flat)
    lines = _lines(flat, downs, _even(flat.shape[1], _SIGNS), signs)
    return Picture(
        lines=tuple(lines),
        rows=tuple((first, end - 1) for first, end in zip(downs, [*downs[1:], rows], strict=True)),
        columns=flat.shape[1],
        across=across or ("columns" if codes.ndim == 2 else "elements"),
        meanings=_meant(lines, signs),
    )


# Where a part of a range holds several kinds, the first of these is shown.
_RANGE: Signs = {3: ("#", "outside"), 2: ("o", "asked for"), 1: (".", "inside"), 0: (" ", "")}


def picture_of_range(size: int, first: int, last: int) -> Picture:
    """Return a picture of a dimension of ``size`` elements and the wanted indices ``first`` to ``last``."""
    low, high = min(first, 0), max(last + 1, size)
    edges = [low + begin for begin in (*_even(high - low, _STRIP), high - low)]
    line = ""
    for begin, end in pairwise(edges):
        changes = [begin, *(each for each in (0, size, first, last + 1) if begin < each < end)]
        kinds = {_kind(size, first, last, each) for each in changes}
        line += next(sign for kind, (sign, _) in _RANGE.items() if kind in kinds)
    return Picture((line,), (), high - low, "indices", _meant([line], _RANGE), low)


def _kind(size: int, first: int, last: int, index: int) -> int:
    is_inside, is_asked = 0 <= index < size, first <= index <= last
    return (2 if is_inside else 3) if is_asked else int(is_inside)


def _even(size: int, most: int) -> list[int]:
    """Return the first indices of at most ``most`` equal parts of ``size`` elements."""
    parts = min(size, most)
    return [size * part // parts for part in range(parts)]


def _alike(flat: Array) -> list[int]:
    """Return the first rows of runs of equal rows, or of parts of equal size if there are too many runs."""
    changes = np.flatnonzero((flat[1:] != flat[:-1]).any(axis=1)) + 1
    return [0, *(int(each) for each in changes)] if len(changes) < _LINES else _even(len(flat), _LINES)


def _lines(flat: Array, downs: list[int], acrosses: list[int], signs: Signs) -> list[str]:
    numbers: Any = flat.view(np.uint8) if flat.dtype == np.bool_ else flat
    low = np.minimum.reduceat(np.minimum.reduceat(numbers, acrosses, axis=1), downs, axis=0)
    high = np.maximum.reduceat(np.maximum.reduceat(numbers, acrosses, axis=1), downs, axis=0)
    return [
        "".join(signs[int(a)][0] if a == b else MIXED for a, b in zip(lows, highs, strict=True))
        for lows, highs in zip(low, high, strict=True)
    ]


def _meant(lines: Sequence[str], signs: Signs) -> tuple[tuple[str, str], ...]:
    """Return the signs that occur, with their meanings."""
    there = set("".join(lines))
    return tuple((sign, meaning) for sign, meaning in (*signs.values(), (MIXED, "mixed")) if meaning and sign in there)
