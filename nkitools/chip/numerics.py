"""Casts as the engines do them: float32 inside, round to nearest even, float to integer saturates.

The reference says that arithmetic "casts input data types to float32", computes there, and that "the float32 results
are cast to dst.dtype" (tensor_tensor, Data types). The conversion of floats to integers is documented only by the
release notes' "rounding of fp32 to int" fix; we round to nearest even and saturate, and turn NaN into 0. A float8
overflows as its ml_dtypes type does (infinity where the format has one, else NaN).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DType, float8_e4m3, float8_e4m3fn, float8_e5m2, float16, tfloat32
from nkitools.chip.narrow_floats import is_narrow, narrow, widened
from nkitools.chip.numeric_flags import EVIDENCE, Saturated
from nkitools.chip.numeric_flags import Array as Array
from nkitools.rules.finding import refuse

FLOAT32_MAX = float(np.finfo(np.float32).max)
_FLOAT64 = np.dtype(np.float64)

# The floats that float32 values leave in earnest: bfloat16 and tfloat32 lack only its last binade's last numbers.
_LARGEST = {
    dtype.name: float(ml_dtypes.finfo(dtype.dtype).max)  # type: ignore[no-untyped-call]
    for dtype in (float16, float8_e4m3, float8_e4m3fn, float8_e5m2)
}


# The GNU C library gives fresh pages for each array of 128 KiB and more until it has seen a larger one freed; 32 MiB is
# the most that it learns from. Arrays up to that size then lie in memory of earlier ones, whose pages are there.
np.empty((1 << 25) - (1 << 16), np.uint8)


def copy_in_order(destination: Array, source: Array) -> None:
    """Copy elements of one dtype in order into another shape."""
    np.copyto(destination, source.reshape(destination.shape))


def round_to_tfloat32(values: Array) -> Array:
    """Round float32 to 10 mantissa bits, nearest even; infinities and NaN keep their bits."""
    bits = np.asarray(values, np.float32, order="C").view(np.uint32)
    kept = bits >> np.uint32(13)
    rounded = (bits + np.uint32(0x0FFF) + (kept & np.uint32(1))) & np.uint32(0xFFFFE000)
    finite = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return np.where(finite, rounded, bits).view(np.float32)


def _float_to_integer(values: Array, target: np.dtype[Any]) -> Array:
    limits = np.iinfo(target)
    # The type must hold the limits exactly, so that the clip cannot round one up past itself.
    rounded: Array = np.array(values, np.float64 if target.itemsize == 4 else np.float32)
    np.rint(rounded, out=rounded)
    if _lies_between(rounded, limits.min, limits.max):
        return rounded.astype(target)
    lost = ~((rounded >= limits.min) & (rounded <= limits.max))
    np.clip(rounded, limits.min, limits.max, out=rounded)
    np.copyto(rounded, 0, where=np.isnan(rounded))
    return _saturated(values, lost, rounded.astype(target))


def _integer_to_integer(values: Array, target: np.dtype[Any]) -> Array:
    if np.can_cast(values.dtype, target):
        return values.astype(target)
    limits = np.iinfo(target)
    wide = values.astype(np.int64)
    if _lies_between(wide, limits.min, limits.max):
        return wide.astype(target)
    lost = (wide < limits.min) | (wide > limits.max)
    return _saturated(values, lost, np.clip(wide, limits.min, limits.max).astype(target))


def _lies_between(values: Array, low: float, high: float) -> bool:
    """Return whether all elements lie in the range (NaN does not): two fast passes without a mask array."""
    if not values.size:
        return True
    smallest = np.minimum.reduce(values, axis=None)
    largest = np.maximum.reduce(values, axis=None)
    return bool(low <= smallest and largest <= high)


def _saturated(values: Array, lost: Array, became: Array) -> Array:
    """Return ``became``, and note the elements that the cast could not represent (NK304)."""
    evidence = EVIDENCE.get()
    if evidence is not None:
        evidence.append(Saturated(values, lost, became))
    return became


def put_floats(destination: Array, values: Array, dtype: DType) -> None:
    """Write ``values`` as a float other than tfloat32: NumPy's own cast rounds to the nearest even.

    Under value rules it notes what a float of few bits cannot represent (NK304): numbers beyond its largest, and
    infinity if it has none. The largest float32 of either sign stands for an infinity, as in nisa.range_select, and may
    become one.
    """
    largest = _LARGEST.get(dtype.name)
    if largest is None or EVIDENCE.get() is None or values.dtype == destination.dtype:
        narrow(destination, values)
        return
    if values.dtype != np.float32:
        values = values.astype(np.float32)  # of narrow floats the host's own minimum takes longer
    if _lies_between(values, -largest, largest):
        narrow(destination, values)
        return
    values = np.array(values)  # the destination may be made of the same bytes
    with np.errstate(over="ignore"):  # this overflow is looked at here, and is no origin of infinities
        narrow(destination, values)
    meant = np.isfinite(values) & (np.abs(values) < FLOAT32_MAX)
    lost = np.isnan(destination) & ~np.isnan(values) | np.isinf(destination) & meant
    if lost.any():
        _saturated(values, lost, destination)


def _refuse_packed(values: Array, name: str) -> None:
    """Packed elements are bits to everything but the microscaling matmul; NumPy would take them for their integer."""
    if values.dtype.names is not None:
        refuse("NK301", f"packed elements ({values.dtype.names[0]}) cannot be converted to {name}")


def cast(values: Array, dtype: DType) -> Array:
    """Return ``values`` cast to ``dtype`` (a new array, or ``values`` itself if nothing changes).

    Errors: NK301 from or to packed elements.
    """
    target = dtype.dtype
    if values.dtype == target and dtype is not tfloat32:
        return values
    _refuse_packed(values, dtype.name)
    if dtype is tfloat32:
        return round_to_tfloat32(values.astype(np.float32, copy=False))
    if dtype.is_integer:
        if values.dtype.kind in "iu":
            return _integer_to_integer(values, target)
        if values.dtype.kind == "b":
            return values.astype(target)
        return _float_to_integer(values, target)
    if dtype.kind == "bool":
        return np.asarray(values != 0)
    if dtype.kind == "packed":
        refuse("NK301", f"{values.dtype} cannot be converted to packed elements ({dtype})")
    became = np.empty(values.shape, target)
    put_floats(became, values, dtype)
    return became


def to_float32(values: Array) -> Array:
    """``values`` as an engine sees them in float32 (int32 beyond 2**24 loses low bits, as on the chip).

    Those in float64 stay as they are: they are of a shadow run, which rounds nothing.
    """
    if values.dtype == np.float32 or values.dtype == np.float64:
        return values
    if is_narrow(values):
        return widened(values)
    _refuse_packed(values, "float32")
    return values.astype(np.float32)


def working(*arrays: Array | Any) -> type[np.floating[Any]]:
    """Return the dtype in which an engine computes: float32, or float64 if an operand comes from a shadow run."""
    for each in arrays:
        if each.__class__ is np.ndarray and each.dtype is _FLOAT64:
            return np.float64
    return np.float32


def through_float32(values: Array, dtype: DType) -> Array:
    """Return the two-step conversion of DMA and of casting copies: to float32, then to ``dtype``."""
    return cast(to_float32(values), dtype)
