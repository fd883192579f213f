"""The tolerance within which two numbers count as the same: some steps (eps above 1) of the coarser of their dtypes.

- integers, bool, packed x4 types, float8_e8m0fnu: 0, as they are counted or copied; the codes of packed types are
  compared
- float8, float6 and float4 types: 1 eps, as a value between two steps may be rounded to either
- bfloat16, float16, tfloat32: 2 eps (0.016, 0.002, 0.002), the same, and once more on the way
- float32, float64: 16 eps (1.9e-6, 3.6e-15), for sums in another order and functions by other approximations

Relative means to the larger of the two magnitudes. Below the dtype's smallest normal number its steps do not shrink
further, nor does the tolerance. In dtypes with 8 exponent bits or more, numbers so small (1e-38) all count as the same,
as an engine may flush them to zero. NaN is the same as NaN, an infinity the same as itself. Where large addends cancel,
differences are larger than that: state an absolute tolerance for such outputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from nkitools.chip.numerics import Array

_NARROW_STEPS, _HALF_STEPS, _WIDE_STEPS = 1, 2, 16
_MAY_BE_FLUSHED = 1e-30
_TFLOAT32_EPS = 2.0**-10  # 10 mantissa bits


@dataclass(frozen=True)
class Tolerance:
    """The largest allowed difference of two numbers: ``|a - b| <= max(atol, rtol * max(|a|, |b|))``; None: by dtype."""

    rtol: float | None = None
    atol: float | None = None

    def of(self, dtypes: Iterable[str]) -> tuple[float, float]:
        """Relative and absolute, for numbers of these dtypes (their names)."""
        by_dtype = [_by_dtype(dtype) for dtype in dtypes]
        rtol = max((relative for relative, _ in by_dtype), default=0.0)
        atol = max((absolute for _, absolute in by_dtype), default=0.0)
        return (rtol if self.rtol is None else self.rtol), (atol if self.atol is None else self.atol)


def _by_dtype(name: str) -> tuple[float, float]:
    if name == "tfloat32":
        return _HALF_STEPS * _TFLOAT32_EPS, float(np.finfo(np.float32).tiny)
    kind: Any = getattr(ml_dtypes, name, name)
    try:
        limits = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    except (TypeError, ValueError):  # no float
        return 0.0, 0.0
    if limits.bits == 8 and name == "float8_e8m0fnu":
        return 0.0, 0.0
    steps = _NARROW_STEPS if limits.bits <= 8 else _HALF_STEPS if limits.bits == 16 else _WIDE_STEPS
    rtol, smallest = steps * float(limits.eps), float(limits.smallest_normal)
    return rtol, smallest if smallest < _MAY_BE_FLUSHED else rtol * smallest


def numbers_of(array: Array) -> Array:
    """Return the values in float64, which holds those of every dtype of NKI; of packed elements the codes.

    Complex numbers become two, in a dimension of their own.
    """
    array = np.asarray(array)
    if array.dtype.names is not None:
        array = array.view(f"u{array.itemsize}")
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    return array.astype(np.float64)


def diverging(first: Array, second: Array, rtol: float, atol: float) -> Array:
    """Return which elements (of float64 arrays of one shape) are not the same."""
    with np.errstate(all="ignore"):
        far = np.abs(first - second) > np.maximum(atol, rtol * np.maximum(np.abs(first), np.abs(second)))
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    finite = np.isfinite(first) & np.isfinite(second)
    return np.asarray(~same & (far | ~finite))
