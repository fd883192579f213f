"""A number of a kernel that is solved for, so that the outputs become right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import numbers_of

_STEP = 1e-2  # parts of the number by which it is first changed
_TURNS = 6
_LEAST = 0.5  # parts of the error that a turn may leave
_NEAR = 2e-3  # parts of a number within which a shorter one is tried


def solved(now: float, outputs: Callable[[float], Sequence[Array]], want: Sequence[Array]) -> Iterator[float]:
    """Yield the numbers that may stand for ``now``, the shortest first; none if no number mends the outputs.

    ``outputs``: runs the kernel with a number in that place. Each turn takes the outputs for linear in the number.
    """
    right = _flat(want)
    at, got = now, _flat(outputs(now))
    if got.shape != right.shape:
        return
    change = _STEP * now or _STEP
    slope = (_flat(outputs(now + change)) - got) / change
    for _ in range(_TURNS):
        step = _to_right(right - got, slope)
        if step is None:
            break
        there = _flat(outputs(at + step))
        if not _size(right - there) <= _LEAST * _size(right - got):
            break
        slope, at, got = (there - got) / step, at + step, there
        if abs(step) <= 1e-5 * abs(at):
            break
    if at != now:
        yield from _rounded(at)


def _flat(arrays: Sequence[Array]) -> Array:
    return np.concatenate([numbers_of(each).reshape(-1) for each in arrays])


def _to_right(error: Array, slope: Array) -> float | None:
    """Return the step that leaves the least error; None if it leaves nearly all of it."""
    known = np.isfinite(error) & np.isfinite(slope)
    error, slope = error[known], slope[known]
    square = float(slope @ slope)
    if not square or not np.isfinite(square):
        return None
    step = float(error @ slope) / square
    return step if step and _size(error - step * slope) < 0.9 * _size(error) else None


def _size(error: Array) -> float:
    return float(np.sqrt(np.mean(np.square(np.where(np.isfinite(error), error, 0.0)))))


def _rounded(value: float) -> Iterator[float]:
    found = dict.fromkeys(float(f"{value:.{digits}g}") for digits in range(1, 8))
    yield from (each for each in found if abs(each - value) <= _NEAR * abs(value) + 1e-12)
