"""The fit of the knobs: by the change of each estimate with each knob, least absolute errors, a pull to the start.

A knob that is no time but a share, or that differs by generation, is fitted like the others: the logarithm of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PULL = 0.25  # of a knob's change by a factor of e, beside the sum of the errors of all rows
LARGEST = 0.35  # errors above count no more than this: a compiler did what no record shows
_ROUNDS = 60


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The factors of the knobs, and the logarithms of estimate over published latency that they lead to."""

    factors: NDArray[np.float64]
    errors: NDArray[np.float64]


def fitted(errors: NDArray[np.float64], slopes: NDArray[np.float64], rows: Sequence[int]) -> Fit:
    """Return the fit on some rows; ``errors``: logarithms, one a row, ``slopes``: (rows, knobs)."""
    chosen = np.array(rows)
    change = np.zeros(slopes.shape[1])
    for _ in range(_ROUNDS):
        now = errors[chosen] + slopes[chosen] @ change
        weights = np.where(np.abs(now) < LARGEST, 1 / np.maximum(np.abs(now), 0.02), 0.3)
        left = (slopes[chosen].T * weights) @ slopes[chosen] + 2 * PULL * np.eye(change.size)
        right = -(slopes[chosen].T * weights) @ errors[chosen]
        change = np.clip(0.5 * change + 0.5 * np.linalg.solve(left, right), -0.5, 0.5)
    return Fit(factors=np.exp(change), errors=errors + slopes @ change)
