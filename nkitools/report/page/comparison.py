"""The comparison of an output with its reference: how many elements differ, how far, and the first wrong tile's
writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import ComparedArrays
from nkitools.comparison.compared_arrays import compared as compared_arrays
from nkitools.comparison.rule import Rule
from nkitools.record.columns import Columns
from nkitools.record.expected_outputs import Reference
from nkitools.record.last_writer import last_writers
from nkitools.record.record import Record
from nkitools.record.rows import Access
from nkitools.record.saved.encoding import leaves

_BINS = 32
_TILES = 200  # wrong tiles that are listed


@dataclass(frozen=True, eq=False)
class Comparison(ComparedArrays):
    """An output and its expected value. ``tolerance``: its source, ``stated``, ``dtype``, or ``none``."""

    tolerance: str = ""

    def histogram(self) -> dict[str, Any]:
        """Return the histogram of the absolute difference by powers of ten, and the number of equal elements."""
        known = self.distance[np.isfinite(self.distance)]
        some = known[known > 0]
        counts = {"equal": int(known.size - some.size), "unknown": int(self.distance.size - known.size)}
        if not some.size:
            return {**counts, "from": 0, "to": 0, "bins": []}
        logs = np.log10(some)
        low, high = float(np.floor(logs.min())), float(np.ceil(logs.max()))
        bins, _ = np.histogram(logs, _BINS, (low, max(high, low + 1)))
        return {**counts, "from": low, "to": max(high, low + 1), "bins": bins.tolist()}


def compared(outputs: Any, reference: Reference, *, passed: bool = False, is_second: bool = False) -> list[Comparison]:
    """Return a comparison for each array among the outputs, in their order.

    ``passed``: the outputs belong to a passed test. If it states no tolerance, any two numbers agree, and only NaN or
    infinity that the reference lacks is wrong. ``is_second``: the outputs belong to the second of two runs that
    `compare_runs` compares, and the reference to the first.
    """
    ours = list(leaves(outputs))
    theirs = list(leaves(reference.values, "reference"))
    if len(ours) != len(theirs):
        message = f"the kernel returns {len(ours)} arrays, the reference has {len(theirs)}"
        return [_not_compared(message) for _ in ours]
    pairs = zip(ours, theirs, strict=True)
    found, places = [], count()
    for (_, mine), (_, other) in pairs:
        rule = reference.rule_of(next(places)) if isinstance(mine, np.ndarray) else reference.rule
        found.append(_compare(mine, other, rule, passed=passed and not rule.is_stated, is_second=is_second))
    return found


def _compare(ours: Any, theirs: Any, rule: Rule, *, passed: bool, is_second: bool) -> Comparison:
    if theirs is None:
        return _not_compared("no reference was given for this output")
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, (np.ndarray, int, float)):
        return _not_compared("only arrays can be compared")
    actual, expected = (theirs, ours) if is_second else (ours, theirs)
    found = compared_arrays(actual, expected, rule)
    if found.message:
        return _not_compared(f"the output and the reference cannot be compared: {found.message}")
    tolerance = "none" if passed else "stated" if rule.is_stated else "dtype"
    wrong = found.wrong & ~np.isfinite(found.distance) if passed else found.wrong
    return Comparison(found.actual, found.expected, wrong, found.rtol, found.atol, tolerance=tolerance)


def _not_compared(message: str) -> Comparison:
    nothing: Array = np.zeros(0, np.bool_)
    return Comparison(nothing, nothing, nothing, message=message)


def wrong_tiles(record: Record, columns: Columns, output: Access, wrong: Array) -> list[list[int]]:
    """Return the instructions that wrote wrong elements last, as `wrong_writes` does."""
    if not output.layout.elements or output.layout.on_chip:
        return []
    return wrong_writes(last_writers(record, columns, output), wrong)


def wrong_writes(writers: Array, wrong: Array) -> list[list[int]]:
    """Return for each writer of wrong elements, in order: its position, their number, and the index of the first one.

    ``writers``: the position of the instruction that wrote each element, negative if none did.
    """
    places = np.flatnonzero(wrong)
    found = np.unique(writers.reshape(-1)[places], return_index=True, return_counts=True)
    rows = zip(*(each.tolist() for each in found), strict=True)
    return [[at, count, int(places[first])] for at, first, count in rows if at >= 0][:_TILES]
