"""``neuron_dtypes``: undocumented; what tests of public kernels use of AWS's package of that name.

Only what leaves no choice is computed: casts that lose nothing but bits of a mantissa (round to nearest even). How
AWS's package treats the rest (numbers beyond the range of a float, fractions as integers) is not published: NK607.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DTYPES, DType, DTypeLike, UnknownDType, as_dtype
from nkitools.chip.numerics import Array
from nkitools.engines.microscaling_formats import FORMATS
from nkitools.rules.finding import not_modelled, refuse

if TYPE_CHECKING:
    import numpy.typing as npt

globals().update(DTYPES)

_BLOCK = 1 << 16  # elements of an array that are checked at a time

__all__ = ["finfo", "is_float_type", "is_int_type", "is_x4_dtype", "sizeinbytes", "static_cast", *DTYPES]


def _known(what: str, dtype: DTypeLike) -> DType | np.dtype[Any]:
    """Return an NKI dtype, or one that only NumPy has (float64); NK301 for what is neither."""
    try:
        return as_dtype(dtype)
    except UnknownDType:
        pass
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        pass
    else:
        return found
    return refuse("NK301", f"neuron_dtypes.{what}: {dtype!r} is not a dtype")


def _numpy(found: DType | np.dtype[Any]) -> np.dtype[Any]:
    return found.dtype if isinstance(found, DType) else found


def sizeinbytes(dtype: DTypeLike) -> int:
    """Bytes of an element; of a packed x4 dtype those of the four together. Errors: NK301."""
    return _known("sizeinbytes", dtype).itemsize


def is_float_type(dtype: DTypeLike) -> bool:
    """Return whether a dtype holds floats, packed x4 ones included. Errors: NK301."""
    found = _known("is_float_type", dtype)
    # To NumPy the floats of ml_dtypes are of no kind.
    return found.kind in ("float", "packed") if isinstance(found, DType) else "float" in found.name


def is_int_type(dtype: DTypeLike) -> bool:
    """Return whether a dtype holds integers. Errors: NK301."""
    found = _known("is_int_type", dtype)
    return found.is_integer if isinstance(found, DType) else found.kind in "iu"


def is_x4_dtype(dtype: DTypeLike) -> bool:
    """Return whether a dtype packs four elements. Errors: NK301."""
    found = _known("is_x4_dtype", dtype)
    return isinstance(found, DType) and found.kind == "packed"


def finfo(dtype: DTypeLike) -> Any:
    """Return the limits of a float dtype, as of ``ml_dtypes.finfo``. Errors: NK301."""
    found = _known("finfo", dtype)
    if not is_float_type(dtype) or is_x4_dtype(dtype):
        refuse("NK301", f"neuron_dtypes.finfo: {found} has no float limits")
    return _limits(found)


def _limits(found: DType | np.dtype[Any]) -> Any:
    limits: Any = ml_dtypes.finfo  # untyped
    return limits(_numpy(found))


def _overflow(found: DType | np.dtype[Any]) -> float:
    """Return the first number that rounds beyond the largest one: 240.00001 is 240, and 248 is none of float8_e4m3."""
    limits = _limits(found)
    largest, step = float(limits.max), float(limits.eps)
    return largest + step * 2.0 ** math.floor(math.log2(largest)) / 2


def static_cast(array: npt.ArrayLike, dtype: DTypeLike) -> Array:
    """Return an array in another dtype; to a packed x4 dtype four elements of the last axis become one, the first
    lowest.

    Errors: NK301, NK607 (values whose cast is not published).
    """
    found, values = _known("static_cast", dtype), np.asarray(array)
    if isinstance(found, DType) and found.kind == "packed":
        return _packed(values, found)
    if values.dtype == _numpy(found):
        return values
    if values.dtype.names:
        not_modelled("neuron_dtypes.static_cast of packed elements to others is not modelled")
    with np.errstate(all="ignore"):
        cast = values.astype(_numpy(found))
        if not _holds_all(_numpy(found), values.dtype):
            _check_cast(values.reshape(-1), cast.reshape(-1), found)
    return cast


def _holds_all(target: np.dtype[Any], source: np.dtype[Any]) -> bool:
    """Return whether ``target`` holds every value of ``source``, infinities and NaN too."""
    return target in (np.float32, np.float64) and "float" in source.name and source.itemsize <= target.itemsize


def _check_cast(values: Array, cast: Array, found: DType | np.dtype[Any]) -> None:
    """NK607 for a value that the cast has changed by more than rounding; block by block, as arrays may be large."""
    # All integers are checked; of floats those that cannot be rounded to a finite number.
    beyond = _overflow(found) if is_float_type(found) else 0.0
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        wide = values[block].astype(np.float64)
        if np.abs(wide).max() < beyond:
            continue
        back = cast[block].astype(np.float64)
        changed = (wide != back) & ~(np.isnan(wide) & np.isnan(back)) & ~(np.abs(wide) < beyond)
        if changed.any():
            first = values[start + int(np.argmax(changed))]
            not_modelled(
                f"neuron_dtypes.static_cast of {first} to {found}, which cannot hold it: how AWS's package rounds or "
                "saturates there is not published",
                remedy="Clip or round before the cast: np.clip(x, lowest, highest), np.rint(x).",
            )


def _packed(values: Array, dtype: DType) -> Array:
    if values.dtype == dtype.dtype:
        return values
    form = FORMATS[dtype]
    if values.ndim == 0 or values.shape[-1] % 4:
        refuse("NK301", f"neuron_dtypes.static_cast: {dtype} packs four elements, the last axis has {values.shape}")
    codes: Array = np.ascontiguousarray(static_cast(values, form.element)).view(np.uint8)
    if form.bits == 4:
        codes = codes[..., 0::2] & 15 | codes[..., 1::2] << 4
    return np.ascontiguousarray(codes).view(dtype.dtype)
