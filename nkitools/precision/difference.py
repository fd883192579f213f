"""The distance of two arrays, and where it is largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import compared, index_of
from nkitools.comparison.rule import EXACT
from nkitools.record.prints.summaries import as_numbers


@dataclass(frozen=True)
class Difference:
    """The distance of one array from another.

    ``max_abs``, ``rms`` and ``max_relative`` are over all elements, ``max_relative`` over those that are not 0 in the
    other array; ``index`` is where ``max_abs`` lies; ``different`` of ``size`` elements are unequal. Equal infinities
    and NaN in both arrays are no difference; any other NaN or infinity is an infinite one.
    """

    max_abs: float
    rms: float
    max_relative: float
    index: tuple[int, ...]
    different: int
    size: int

    @classmethod
    def of(cls, values: Array, truth: Array) -> Difference:
        """Return the difference of float64 ``values`` from ``truth``, of one shape."""
        found = compared(values, truth, EXACT)
        if not found.size:
            return cls(0.0, 0.0, 0.0, (), 0, 0)
        error = np.where(np.isnan(found.distance), np.inf, found.distance)
        with np.errstate(all="ignore"):
            relative = error / np.abs(truth)
            relative[np.isnan(relative) & (error > 0)] = np.inf
            relative[(truth == 0) | (error == 0)] = 0
            worst = index_of(int(error.argmax()), error.shape)
            rms = float(np.sqrt(np.mean(np.square(error))))
        return cls(float(error[worst]), rms, float(relative.max()), worst, found.count, found.size)


def exact(array: Array) -> Array:
    """Return the values in float64, which holds those of every dtype of NKI; of packed elements the bits."""
    return as_numbers(array).astype(np.float64)
