"""The allowed difference of two numbers by dtype: some steps (eps above 1) of the coarser of their dtypes.

- integers, bool, packed x4 types, float8_e8m0fnu: 0, as they are counted or copied; the codes of packed types are
  compared
- float8, float6 and float4 types: 1 eps, as a value between two steps may be rounded to either
- bfloat16, float16, tfloat32: 2 eps (0.016, 0.002, 0.002), the same, and once more on the way
- float32, float64: 16 eps (1.9e-6, 3.6e-15), for sums in another order and functions by other approximations

Below the dtype's smallest normal number its steps do not shrink further, nor does the tolerance. In dtypes with 8
exponent bits or more, numbers so small (1e-38) all count as the same, as an engine may flush them to zero. Where large
addends cancel, differences are larger than that: state an absolute tolerance for such outputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

_NARROW_STEPS, _HALF_STEPS, _WIDE_STEPS = 1, 2, 16
_MAY_BE_FLUSHED = 1e-30
_TFLOAT32_EPS = 2.0**-10  # 10 mantissa bits


def tolerance_of(dtypes: Iterable[str]) -> tuple[float, float]:
    """Return the largest relative and the largest absolute tolerance of some dtypes (their names)."""
    found = [_by_dtype(dtype) for dtype in dtypes]
    return max((rtol for rtol, _ in found), default=0.0), max((atol for _, atol in found), default=0.0)


def _by_dtype(name: str) -> tuple[float, float]:
    if name == "tfloat32":
        return _HALF_STEPS * _TFLOAT32_EPS, float(np.finfo(np.float32).tiny)
    limits = limits_of(name)
    if limits is None:
        return 0.0, 0.0
    steps = _NARROW_STEPS if limits.bits <= 8 else _HALF_STEPS if limits.bits == 16 else _WIDE_STEPS
    rtol, smallest = steps * float(limits.eps), float(limits.smallest_normal)
    return rtol, smallest if smallest < _MAY_BE_FLUSHED else rtol * smallest


def limits_of(name: str) -> Any:
    """Return the ``finfo`` of a floating-point or complex dtype; None for others, float8_e8m0fnu and tfloat32."""
    kind: Any = getattr(ml_dtypes, name, name)
    try:
        return None if name == "float8_e8m0fnu" else ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    except (TypeError, ValueError):
        return None
