"""The dtype of a result of two operands.

Source: legacy API common fields, "NKI Type Promotion" (SDK 2.26); the modern reference has no table.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip import dtypes
from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.rules.finding import refuse

_FLOAT_RANK = (
    "float8_e8m0fnu", "float8_e4m3fn", "float8_e4m3", "float8_e5m2", "float16", "bfloat16", "tfloat32", "float32",
)  # fmt: skip
_MIXED_FLOATS = {
    frozenset({"float16", "bfloat16"}): dtypes.float32,
    frozenset({"float8_e4m3", "float8_e5m2"}): dtypes.bfloat16,
}


def known_dtype(dtype: DTypeLike) -> DType:
    """Return ``dtype`` as a DType; NK301 if NKI has no such dtype."""
    try:
        return as_dtype(dtype)
    except UnknownDType as error:
        refuse("NK301", str(error), remedy="Pass a dtype of nki.language, such as nl.float32.")


def promote(first: DType, second: DType) -> DType:
    """Return the dtype of a result of both: the float of a float and an integer, else the wider, or a widened one."""
    if first is second:
        return first
    if first.is_float and second.is_float:
        mixed = _MIXED_FLOATS.get(frozenset({first.name, second.name}))
        return mixed or max(first, second, key=lambda dtype: _FLOAT_RANK.index(dtype.name))
    if first.is_float or second.is_float:
        return first if first.is_float else second
    if "packed" in (first.kind, second.kind):
        refuse("NK301", f"no dtype holds the values of both {first} and {second}: packed elements are not converted")
    common = np.promote_types(first.dtype, second.dtype)
    return dtypes.float32 if common.itemsize > 4 else as_dtype(common)


def result_dtype(dtype: DTypeLike | None, *operands: TileOrNumber) -> DType:
    """``dtype`` where given, else the promotion of the tensor operands' dtypes (numbers do not count)."""
    if dtype is not None:
        return known_dtype(dtype)
    kinds = [operand.dtype for operand in operands if isinstance(operand, NkiTensor)]
    result = kinds[0]
    for kind in kinds[1:]:
        result = promote(result, kind)
    return result
