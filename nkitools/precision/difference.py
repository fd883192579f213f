"""The distance of two arrays, and where it is largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.prints.summaries import as_numbers


@dataclass(frozen=True)
class Difference:
    """The distance of one array from another.

    ``max_abs``, ``rms`` and ``max_relative`` are over all elements, ``max_relative`` over those that are not 0 in the
    other array; ``index`` is where ``max_abs`` lies; ``different`` of ``size`` elements are unequal. Equal infinities
    and NaN where NaN belongs are no difference; a NaN or infinity elsewhere is an infinite one.
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
        with np.errstate(all="ignore"):
            error = np.abs(values - truth)
            error[(values == truth) | (np.isnan(values) & np.isnan(truth))] = 0
            error[np.isnan(error)] = np.inf
            relative = error / np.abs(truth)
            relative[np.isnan(relative) & (error > 0)] = np.inf
            relative[(truth == 0) | (error == 0)] = 0
            worst = np.unravel_index(int(error.argmax()), error.shape)
            return cls(
                max_abs=float(error[worst]),
                rms=float(np.sqrt(np.mean(np.square(error)))),
                max_relative=float(relative.max()),
                index=tuple(int(axis) for axis in worst),
                different=int(np.count_nonzero(error)),
                size=error.size,
            )


def exact(array: Array) -> Array:
    """Return the values in float64, which holds those of every dtype of NKI; of packed elements the bits."""
    return as_numbers(array).astype(np.float64)
