"""The dtypes of NKI over NumPy and ml_dtypes (NKI ISA API common fields, "Supported Data Types").

A packed x4 dtype is, in NumPy, a one-field structured dtype of its name over a little-endian unsigned integer;
``tfloat32`` is held in float32 and rounded to its 10 mantissa bits on every write.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Kind = Literal["float", "signed", "unsigned", "bool", "packed"]
DTypeLike: TypeAlias = "DType | str | type | np.dtype[Any]"  # nl.float32, "float32", np.float32


class DType:
    """One NKI dtype, such as nl.bfloat16. Authors use those of `nki.language` and make no others.

    A dtype equals its name ("bfloat16") and the NumPy or ml_dtypes dtype or type of its elements, has the hash of its
    name, and can be passed to NumPy as a dtype. ``itemsize``: the bytes of an element; ``dtype``: the NumPy dtype.
    ``tfloat32`` equals no NumPy dtype, as none has its 10 mantissa bits: its elements are kept in float32. (NumPy's own
    ``==``, with a NumPy dtype on the left, compares that, and takes nl.tfloat32 for float32.)
    """

    __slots__ = ("dtype", "index", "is_float", "is_integer", "is_wide", "itemsize", "kind", "name")

    _registry: Final[list[DType]] = []

    def __init__(self, name: str, kind: Kind, dtype: npt.DTypeLike) -> None:
        self.name = name
        self.kind = kind
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.is_float = kind == "float"
        self.is_integer = kind in ("signed", "unsigned")
        self.is_wide = self.is_integer and self.itemsize == 8  # of 64 bits: no engine computes on it
        self.index = len(DType._registry)
        DType._registry.append(self)

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, DType):
            return other.name == self.name
        if isinstance(other, str):
            return other == self.name
        if self.name == "tfloat32":
            return False
        return isinstance(other, (np.dtype, type)) and _numpy_dtype(other) == self.dtype

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (as_dtype, (self.name,))


def _numpy_dtype(value: str | type | np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the NumPy dtype of ``value``; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # old NumPy type codes are not our reader's business
            found: np.dtype[Any] = np.dtype(value)
    except (TypeError, ValueError):
        return None
    return found


def _packed(name: str, unsigned: str) -> DType:
    return DType(name, "packed", [(name, unsigned)])


bool_ = DType("bool", "bool", np.bool_)
int8 = DType("int8", "signed", np.int8)
int16 = DType("int16", "signed", np.int16)
int32 = DType("int32", "signed", np.int32)
uint8 = DType("uint8", "unsigned", np.uint8)
uint16 = DType("uint16", "unsigned", np.uint16)
uint32 = DType("uint32", "unsigned", np.uint32)
float16 = DType("float16", "float", np.float16)
float32 = DType("float32", "float", np.float32)
bfloat16 = DType("bfloat16", "float", ml_dtypes.bfloat16)
tfloat32 = DType("tfloat32", "float", np.float32)
float8_e4m3 = DType("float8_e4m3", "float", ml_dtypes.float8_e4m3)
float8_e4m3fn = DType("float8_e4m3fn", "float", ml_dtypes.float8_e4m3fn)
float8_e5m2 = DType("float8_e5m2", "float", ml_dtypes.float8_e5m2)
float8_e8m0fnu = DType("float8_e8m0fnu", "float", ml_dtypes.float8_e8m0fnu)
float8_e5m2_x4 = _packed("float8_e5m2_x4", "<u4")
float8_e4m3fn_x4 = _packed("float8_e4m3fn_x4", "<u4")
float4_e2m1fn_x4 = _packed("float4_e2m1fn_x4", "<u2")
int64 = DType("int64", "signed", np.int64)  # since NKI 0.7: of scalars, and of tensors that only DMA moves
uint64 = DType("uint64", "unsigned", np.uint64)

INTEGERS = (int8, int16, int32, uint8, uint16, uint32)
FLOATS = (float8_e4m3, float8_e5m2, float16, bfloat16, float32)  # of NeuronCore-v2, without tfloat32

# The dtypes that every version of NKI has; `_NAMED` has those of 64 bits, too.
DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in DType._registry if not dtype.is_wide}
_NAMED = {dtype.name: dtype for dtype in DType._registry}
_ALIASES = {"bool_": bool_, "float8e4": float8_e4m3, "float8e5": float8_e5m2}
_BY_NUMPY: dict[np.dtype[Any], DType] = {dtype.dtype: dtype for dtype in DType._registry if dtype is not tfloat32}

# What float32 is in a shadow run, which rounds nothing: held in float64. No author meets it, so no table above has it.
float32_in_float64 = DType("float32", "float", np.float64)


class UnknownDType(ValueError):
    """A value that names no dtype of NKI."""


_PYTHON = {float: float32, int: int32, bool: bool_}


def as_dtype(value: DTypeLike) -> DType:
    """Return the NKI dtype that ``value`` names.

    A DType, a string, a NumPy or ml_dtypes dtype or type, or Python's float (float32), int (int32) or bool.
    Raises UnknownDType for everything else (float64 included: no engine has it).
    """
    if type(value) is DType:
        return value
    if isinstance(value, np.dtype) and value in _BY_NUMPY:
        return _BY_NUMPY[value]
    found = None
    if isinstance(value, str):
        name = value.rsplit(".", 1)[-1]
        found = _NAMED.get(name) or _ALIASES.get(name)
    elif isinstance(value, type):
        found = _PYTHON.get(value)
    # Only these: to NumPy, None is float64 as well, and an array is its dtype.
    if found is None and isinstance(value, (str, type, np.dtype)):
        numpy_dtype = _numpy_dtype(value)
        found = None if numpy_dtype is None else _BY_NUMPY.get(numpy_dtype)
    if found is None:
        raise UnknownDType(f"{value!r} is not a dtype of NKI; it has {', '.join(DTYPES)}")
    return found
