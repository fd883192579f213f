"""Two arrays, compared element by element: which differ, the first and the worst of them, and how many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nkitools.comparison.rule import BY_DTYPE, Rule

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ComparedArrays:
    """An array and what it should be.

    ``message`` says why they cannot be compared, else ''; then ``wrong`` is empty. ``wrong`` is a mask of the elements
    that differ by more than ``atol + rtol * abs(expected)``.
    """

    actual: Array
    expected: Array
    wrong: Array
    rtol: float = 0.0
    atol: float = 0.0
    message: str = ""

    @property
    def agree(self) -> bool:
        """Return True if the shapes and dtypes can be compared and no element differs."""
        return not self.message and not self.count

    @cached_property
    def count(self) -> int:
        """The number of elements that differ."""
        return int(np.count_nonzero(self.wrong))

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.wrong.size

    @cached_property
    def distance(self) -> Array:
        """The absolute differences, 0 of equal elements; NaN or infinite where one of the two is no finite number."""
        return distances(self.actual, self.expected)

    @property
    def first(self) -> tuple[int, ...]:
        """Return the index of the first element that differs, in C order; () where none does."""
        return index_of(int(np.argmax(self.wrong)), self.wrong.shape) if self.count else ()

    @cached_property
    def worst(self) -> tuple[int, ...]:
        """The index of the largest difference: among the elements that differ, if any; a NaN before all others."""
        if not self.count and not (self.distance > 0).any():
            return ()
        ranked = np.where(self.wrong | (not self.count), np.where(np.isnan(self.distance), np.inf, self.distance), -1.0)
        return index_of(int(np.argmax(ranked)), self.wrong.shape)

    @property
    def largest(self) -> float | None:
        """Return the largest difference of the elements that differ; None if one of the values is not finite."""
        far = self.distance[self.wrong]
        return float(far.max(initial=0.0)) if np.isfinite(far).all() else None

    def text(self, name: str) -> str:
        """Return the difference as sentences: the number of elements, the first and the worst; '' if they agree."""
        if self.message:
            return f"{name}: {self.message}"
        if not self.count:
            return ""
        lines = [
            f"{name}: {self.count} of {self.size} elements differ by more than atol={self.atol:g}, rtol={self.rtol:g}",
            f"first wrong: {self.element(name, self.first)}",
            f"worst wrong: {self.element(name, self.worst)}",
        ]
        return "\n".join(lines)

    def element(self, name: str, index: tuple[int, ...]) -> str:
        """Return an element and what it should be: ``out[4, 0] is 3.0, expected 2.0``."""
        at = f"[{', '.join(map(str, index))}]" if index else ""
        return f"{name}{at} is {shown(self.actual, index)}, expected {shown(self.expected, index)}"


def compared(
    actual: Any, expected: Any, rule: Rule = BY_DTYPE, *, dtypes: Iterable[str] = (), looked_at: Array | None = None
) -> ComparedArrays:
    """Compare an array with what it should be. Nothing is broadcast.

    ``dtypes``: further dtypes (their names) that decide where the rule has no numbers. ``looked_at``: a mask of the
    elements that count.
    """
    first, second = np.asarray(actual), np.asarray(expected)
    if first.shape != second.shape:
        return _uncomparable(first, second, f"shape {list(first.shape)}, expected {list(second.shape)}")
    rtol, atol = rule.numbers([first.dtype.name, second.dtype.name, *dtypes])
    try:
        wrong = _differing(first, second, rtol, atol, equal_nan=rule.equal_nan)
    except (TypeError, ValueError) as error:
        return _uncomparable(first, second, f"{first.dtype} and {second.dtype} cannot be compared: {error}")
    if looked_at is not None:
        wrong &= looked_at
    return ComparedArrays(first, second, wrong, rtol, atol)


def numbers_of(array: Any) -> Array:
    """Return the values in float64, which holds those of every dtype of NKI; complex ones as they are, packed as codes.

    ValueError or TypeError for what holds no numbers.
    """
    array = np.asarray(array)
    if array.dtype.names is not None:
        array = array.view(f"u{array.itemsize}")
    if array.dtype.kind in "USOmM":
        raise TypeError(f"{array.dtype} holds no numbers")
    return np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64)


def index_of(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the element at a place in C order."""
    return tuple(int(at) for at in np.unravel_index(flat, shape))


def shown(array: Array, index: tuple[int, ...]) -> str:
    """Return an element as text, of packed types the code."""
    value = array[index]
    return f"{int(value[value.dtype.names[0]]):#x}" if array.dtype.names else str(value)


def _uncomparable(first: Array, second: Array, message: str) -> ComparedArrays:
    return ComparedArrays(first, second, np.zeros(0, np.bool_), message=message)


def distances(actual: Array, expected: Array) -> Array:
    """Return the absolute differences of two arrays of one shape, as `ComparedArrays.distance`.

    TypeError or ValueError for elements that are no numbers.
    """
    first, second = numbers_of(actual), numbers_of(expected)
    with np.errstate(all="ignore"):
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        return np.where(same, 0.0, np.abs(first - second))


def _differing(first: Array, second: Array, rtol: float, atol: float, *, equal_nan: bool) -> Array:
    if not rtol and not atol and first.dtype.kind in "iub" and second.dtype.kind in "iub":
        return np.asarray(first != second)  # float64 does not hold all integers of 64 bits
    one, other = numbers_of(first), numbers_of(second)
    with np.errstate(all="ignore"):
        near = np.abs(one - other) <= atol + rtol * np.abs(other)
    same = (one == other) | (near & np.isfinite(one) & np.isfinite(other))
    if equal_nan:
        same |= np.isnan(one) & np.isnan(other)
    return np.asarray(~same)
