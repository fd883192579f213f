"""The largest tolerance that may be derived for an output: a larger one must be stated.

``rtol`` by the dtype of the output; ``atol`` at most that share of the root mean square of the expected values, so that
an element that should be nearly 0, where large addends cancel, may be off by as little as its neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.comparison.compared_arrays import numbers_of
from nkitools.comparison.dtype_table import limits_of, tolerance_of
from nkitools.comparison.rule import Rule

_MOST = {"float64": 1e-12, "float32": 1e-4, "tfloat32": 3e-3, "float16": 3e-3, "bfloat16": 2e-2}
_MOST_OF_FLOAT8 = 0.15  # more than half a step of float8_e5m2, to whose nearest value a right result is rounded


def most_relative(dtype: str) -> float:
    """Return the largest relative tolerance for an output of a dtype (its name); 0 of integers, bool and codes."""
    limits = limits_of(dtype)
    if dtype in _MOST or limits is None:
        return _MOST.get(dtype, 0.0)
    return _MOST_OF_FLOAT8 if limits.bits == 8 else tolerance_of([dtype])[0]


def bound_of(actual: Any, expected: Any, dtype: str = "") -> Rule:
    """Return the widest rule for an output; ``dtype``: its name, where the array has another one."""
    rtol = most_relative(dtype or np.asarray(actual).dtype.name)
    return Rule(rtol, max(tolerance_of([dtype or np.asarray(actual).dtype.name])[1], rtol * root_mean_square(expected)))


def root_mean_square(array: Any) -> float:
    """Return the root mean square of the finite elements; 0 of none."""
    numbers = numbers_of(array)
    finite = np.abs(numbers[np.isfinite(numbers)])
    largest = float(finite.max(initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(finite / largest)))) if largest else 0.0
