"""Dtypes of the legacy dialect: NumPy's own types and dtypes, and how the dtype of a result is found.

Source: NKI API Common Fields, "Supported Data Types", "NKI Type Promotion" and "Weakly Typed Scalar Type Inference"
(SDK 2.26).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from nkitools.chip import dtypes
from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype
from nkitools.language.promotion import known_dtype, promote
from nkitools.rules.finding import refuse

bool_ = np.bool_
int8 = np.int8
int16 = np.int16
int32 = np.int32
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
float16 = np.float16
float32 = np.float32
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
tfloat32 = np.dtype("V4")

_NUMBERS = (int, float, np.generic)
ResultDType: TypeAlias = "DTypeLike | None"  # of a result; None is that of the operands


def element_type(dtype: ResultDType) -> DType:
    """Return the NKI dtype that ``dtype`` names. Errors: NK301."""
    if isinstance(dtype, np.dtype) and dtype == tfloat32:
        return dtypes.tfloat32
    return known_dtype(dtype)  # type: ignore[arg-type]  # None is refused there


def shown(dtype: DType) -> np.dtype[Any]:
    """Return a tensor's ``.dtype`` as this dialect shows it: a NumPy dtype."""
    return tfloat32 if dtype is dtypes.tfloat32 else dtype.dtype


def is_number(value: Any) -> bool:
    """Return whether an operand is a scalar known when the kernel is compiled."""
    return isinstance(value, _NUMBERS)


def _of_number(value: float | np.generic) -> DType:
    """Return a scalar's dtype: a NumPy scalar has its own, a Python one the widest of its kind (bool: uint8)."""
    if isinstance(value, np.generic):
        try:
            return as_dtype(value.dtype)
        except UnknownDType:
            pass
    if isinstance(value, bool):
        return dtypes.uint8
    return dtypes.int32 if isinstance(value, (int, np.integer)) else dtypes.float32


def result_type(dtype: ResultDType, what: str, *operands: Any) -> DType:
    """``dtype`` where given, else the promotion of the operands' dtypes; scalars count."""
    if dtype is not None:
        return element_type(dtype)
    found: DType | None = None
    for operand in operands:
        kind = _of_number(operand) if isinstance(operand, _NUMBERS) else operand.element
        found = kind if found is None or found is kind else promote(found, kind)
    if found is None:
        refuse("NK609", f"{what} is called without operands")
    return found
