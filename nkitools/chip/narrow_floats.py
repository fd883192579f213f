"""Casts between float32 and narrow floats by tables: those of one byte both ways, float16 into float32.

They give what the casts of NumPy and ml_dtypes give, from which the tables are made, in a fifth of the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.chip.dtypes import float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float16

if TYPE_CHECKING:
    from nkitools.chip.numeric_flags import Array

_OF_A_BYTE = (float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu)
# By their numbers, which are compared sooner than dtypes.
_BYTES: dict[int, np.dtype[Any]] = {each.dtype.num: each.dtype for each in _OF_A_BYTE}
_NARROW: dict[int, np.dtype[Any]] = {float16.dtype.num: float16.dtype, **_BYTES}


def is_narrow(values: Array) -> bool:
    """Return True if the elements are floats that `widened` takes."""
    return values.dtype.num in _NARROW


def widened(values: Array) -> Array:
    """Return float16 or floats of one byte as a new array of float32, in the layout that NumPy's cast gives it."""
    codes: Array = values.view(np.uint8 if values.itemsize == 1 else np.uint16)
    found: Array = np.empty_like(values, np.float32)
    _floats(values.dtype.num).take(codes, out=found, mode="wrap")  # a mode saves the look at bounds
    return found


def narrow(destination: Array, values: Array) -> None:
    """Write ``values`` into floats of other dtypes, rounded to the nearest even, as `numpy.copyto` does."""
    if destination.dtype.num in _BYTES and values.dtype == np.float32:
        codes = _codes(destination.dtype.num).take(upper_halves(values), mode="wrap")
        np.copyto(destination.view(np.uint8), codes)
    else:
        np.copyto(destination, values, casting="unsafe")


def upper_halves(values: Array) -> Array:
    """Return the upper halves of the bits of float32, rounded to odd, as a new array of uint32.

    They keep all that rounding to less than 7 bits of mantissa asks for.
    """
    words = values.view(np.uint32)
    halves: Array = words & np.uint32(0xFFFF)
    halves += np.uint32(0xFFFF)
    halves |= words
    halves >>= np.uint32(16)
    return halves


@lru_cache
def _floats(number: int) -> Array:
    """Return the value of each code of a narrow dtype."""
    dtype = _NARROW[number]
    return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype).astype(np.float32)


@lru_cache
def _codes(number: int) -> Array:
    """Return the code of each float32 whose lower 16 bits are zero."""
    with np.errstate(all="ignore"):
        halves = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        return halves.view(np.float32).astype(_BYTES[number]).view(np.uint8)
