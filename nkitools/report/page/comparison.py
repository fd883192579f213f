"""The comparison of an output with its reference: how many elements differ, how far, and the first wrong tile's
writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.expected_outputs import Reference
from nkitools.record.last_writer import last_writers
from nkitools.record.record import Record
from nkitools.record.rows import Access
from nkitools.record.saved.encoding import leaves
from nkitools.report.tolerance import Tolerance, diverging, numbers_of

_BINS = 32
_TILES = 200  # wrong tiles that are listed


@dataclass(frozen=True, eq=False)
class Comparison:
    """An output and what it should be.

    ``message`` says why they cannot be compared, else ''. ``wrong`` is a mask, ``distance`` the absolute difference
    (NaN where one of the two is no number). ``worst`` is the index of the largest difference, among the wrong elements
    where there are any, a NaN before all others. ``tiles`` are the instructions that wrote wrong elements last:
    position and how many.
    """

    message: str = ""
    expected: Array | None = None
    wrong: Array | None = None
    distance: Array | None = None
    rtol: float = 0.0
    atol: float = 0.0
    tolerance: str = ""  # where it comes from: stated, dtype, or none
    worst: tuple[int, ...] = ()
    tiles: Sequence[tuple[int, int]] = ()

    @property
    def count(self) -> int:
        """Return the number of wrong elements."""
        return 0 if self.wrong is None else int(np.count_nonzero(self.wrong))

    def histogram(self) -> dict[str, Any]:
        """Return how many elements differ by how much: decades of the absolute difference, and those that are equal."""
        assert self.distance is not None
        known = self.distance[np.isfinite(self.distance)]
        some = known[known > 0]
        counts = {"equal": int(known.size - some.size), "unknown": int(self.distance.size - known.size)}
        if not some.size:
            return {**counts, "from": 0, "to": 0, "bins": []}
        logs = np.log10(some)
        low, high = float(np.floor(logs.min())), float(np.ceil(logs.max()))
        bins, _ = np.histogram(logs, _BINS, (low, max(high, low + 1)))
        return {**counts, "from": low, "to": max(high, low + 1), "bins": bins.tolist()}


def compared(outputs: Any, reference: Reference, *, passed: bool = False) -> list[Comparison]:
    """Return a comparison for each array among the outputs, in their order.

    ``passed``: the outputs are those of a test that has passed. If it states no tolerance, numbers of any difference
    agree, and only a NaN or an infinity that the reference has not is wrong.
    """
    ours = list(leaves(outputs))
    theirs = list(leaves(reference.values, "reference"))
    if len(ours) != len(theirs):
        message = f"the kernel returns {len(ours)} arrays, the reference has {len(theirs)}"
        return [Comparison(message) for _ in ours]
    return [_compare(mine, other, reference, passed=passed) for (_, mine), (_, other) in zip(ours, theirs, strict=True)]


def _compare(ours: Any, theirs: Any, reference: Reference, *, passed: bool) -> Comparison:
    if theirs is None:
        return Comparison("no reference was given for this output")
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, (np.ndarray, int, float)):
        return Comparison("only arrays can be compared")
    theirs = np.asarray(theirs)
    if theirs.shape not in (ours.shape, ()):
        return Comparison(f"the output has shape {list(ours.shape)}, the reference {list(theirs.shape)}")
    try:
        first, second = numbers_of(ours), np.broadcast_to(numbers_of(theirs), ours.shape)
        dtypes = ours.dtype.name, _narrowed(theirs)
        rtol, atol, tolerance, wrong = _judged(first, second, dtypes, reference, passed=passed)
    except (TypeError, ValueError) as error:
        return Comparison(f"the output and the reference cannot be compared: {error}")
    with np.errstate(all="ignore"):
        distance = np.where(first == second, 0.0, np.abs(first - second))
    return Comparison("", np.asarray(theirs), wrong, distance, rtol, atol, tolerance, _worst(wrong, distance))


def _judged(
    first: Array, second: Array, dtypes: tuple[str, str], reference: Reference, *, passed: bool
) -> tuple[float, float, str, Array]:
    """Return the tolerances, where they come from, and which elements are wrong."""
    if reference.is_stated:
        rtol, atol, tolerance = reference.rtol or 0.0, reference.atol or 0.0, "stated"
        with np.errstate(all="ignore"):
            near = np.abs(first - second) <= atol + rtol * np.abs(second)
        finite = np.isfinite(first) & np.isfinite(second)
        wrong = ~((first == second) | (near & finite) | (np.isnan(first) & np.isnan(second)))
    else:
        rtol, atol = Tolerance().of(dtypes)
        tolerance = "none" if passed else "dtype"
        wrong = diverging(first, second, rtol, atol)
        if passed:
            wrong &= ~(np.isfinite(first) & np.isfinite(second))
    if not reference.equal_nan:
        wrong |= np.isnan(first) & np.isnan(second)
    return rtol, atol, tolerance, wrong


def _narrowed(array: Array) -> str:
    """Return a reference is often reckoned in float64 or Python's integers, which asks for no more precision."""
    return array.dtype.name if array.dtype.kind not in "fiub" or array.dtype.itemsize < 8 else "float64"


def _worst(wrong: Array, distance: Array) -> tuple[int, ...]:
    if not wrong.any() and not (distance > 0).any():
        return ()
    ranked = np.where(wrong | ~wrong.any(), np.where(np.isnan(distance), np.inf, distance), -1.0)
    return tuple(int(at) for at in np.unravel_index(int(np.argmax(ranked)), ranked.shape))


def wrong_tiles(record: Record, columns: Columns, output: Access, wrong: Array) -> list[list[int]]:
    """Return the instructions that wrote wrong elements last, as `wrong_writes` does."""
    if not output.layout.elements or output.layout.on_chip:
        return []
    return wrong_writes(last_writers(record, columns, output), wrong)


def wrong_writes(writers: Array, wrong: Array) -> list[list[int]]:
    """Return who wrote wrong elements, in order: position, how many of them, and the place of the first one.

    ``writers``: the position of the instruction that wrote each element, negative where none did.
    """
    places = np.flatnonzero(wrong)
    found = np.unique(writers.reshape(-1)[places], return_index=True, return_counts=True)
    rows = zip(*(each.tolist() for each in found), strict=True)
    return [[at, count, int(places[first])] for at, first, count in rows if at >= 0][:_TILES]
