"""The valid inputs of activation functions, and inputs outside (NK305).

Source: table "Supported Activation Functions", Valid Input Range (NKI 0.6). The least magnitudes of the square root
leave out 0, whose root is 0 on every chip that we can think of: we let it pass. An input without a finite result, as 0
for the logarithm, is NK404's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nkitools.chip.numeric_flags import EVIDENCE, OutsideRange
from nkitools.chip.numerics import Array
from nkitools.engines.operators import Activation, Compute


def watched(function: Activation) -> Compute:
    """Return the function's computation, which notes inputs that lie outside of its range."""
    compute = function.compute
    if not function.is_limited:
        return compute
    valid = _described(function)

    def noting(x: Array, out: Array) -> Any:
        evidence = EVIDENCE.get()
        # Before it is computed: the results may take the place of the inputs.
        if evidence is not None and x.size and not _is_inside(function, x):
            outside = _outside(function, x)
            if outside.any():
                evidence.append(OutsideRange(function.name, valid, np.array(x), outside))
        return compute(x, out=out)

    return noting


def _is_inside(function: Activation, x: Array) -> bool:
    """Return whether smallest and largest input show that all are valid: two fast passes, and no array."""
    low, high = function.valid
    smallest, largest = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
    if low <= smallest and largest <= high:
        return True
    return function.signed and bool(-high <= smallest and largest <= (high if low == 0 else -low))


def _outside(function: Activation, x: Array) -> Array:
    low, high = function.valid
    size = np.abs(x) if function.signed else x
    outside: Array = (size < low) | (size > high)
    return outside & (x != 0) if function.name == "sqrt" else outside


def _described(function: Activation) -> str:
    low, high = (_power(limit) for limit in function.valid)
    if not function.signed:
        return f"{low} to {high}"
    return f"-{high} to {high}" if function.valid[0] == 0 else f"{low} to {high} in magnitude"


def _power(limit: float) -> str:
    """2**-64 as the table writes it, or a multiple of pi."""
    if limit in (math.pi, math.pi / 2):
        return "pi" if limit == math.pi else "pi/2"
    return f"2^{math.frexp(limit)[1] - 1}"
