"""The dtypes of NKI: what names them, what they equal, and that NumPy takes them for its own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip import dtypes
from nkitools.chip.dtypes import DTYPES, DType, UnknownDType, as_dtype

# name: (kind, bytes, NumPy's dtype), from NKI ISA API common fields, "Supported Data Types by NKI" (SDK 2.32).
TABLE: dict[str, tuple[str, int, Any]] = {
    "uint8": ("unsigned", 1, np.uint8),
    "int8": ("signed", 1, np.int8),
    "uint16": ("unsigned", 2, np.uint16),
    "int16": ("signed", 2, np.int16),
    "uint32": ("unsigned", 4, np.uint32),
    "int32": ("signed", 4, np.int32),
    "float8_e4m3": ("float", 1, ml_dtypes.float8_e4m3),
    "float8_e5m2": ("float", 1, ml_dtypes.float8_e5m2),
    "float8_e4m3fn": ("float", 1, ml_dtypes.float8_e4m3fn),
    "float8_e8m0fnu": ("float", 1, ml_dtypes.float8_e8m0fnu),
    "float16": ("float", 2, np.float16),
    "bfloat16": ("float", 2, ml_dtypes.bfloat16),
    "tfloat32": ("float", 4, np.float32),
    "float32": ("float", 4, np.float32),
    "float8_e5m2_x4": ("packed", 4, [("float8_e5m2_x4", "<u4")]),
    "float8_e4m3fn_x4": ("packed", 4, [("float8_e4m3fn_x4", "<u4")]),
    "float4_e2m1fn_x4": ("packed", 2, [("float4_e2m1fn_x4", "<u2")]),
    "bool": ("bool", 1, np.bool_),
}
EACH = pytest.mark.parametrize("name", list(TABLE))
OF_NUMPY = [name for name in TABLE if name != "tfloat32"]


def test_the_table_is_complete() -> None:
    """Eighteen dtypes, no more and no fewer."""
    assert set(DTYPES) == set(TABLE)
    assert dtypes.bool_ is DTYPES["bool"]


@EACH
def test_a_dtype_is_what_the_table_says(name: str) -> None:
    """Kind, size and NumPy's name for it."""
    kind, itemsize, numpy = TABLE[name]
    dtype = DTYPES[name]
    assert (dtype.name, dtype.kind, dtype.itemsize) == (name, kind, itemsize)
    assert dtype.dtype == np.dtype(numpy)
    assert (dtype.is_float, dtype.is_integer) == (kind == "float", kind in ("signed", "unsigned"))


@EACH
def test_a_dtype_equals_its_names(name: str) -> None:
    """Kernels compare ``tensor.dtype`` with nl dtypes, strings, NumPy dtypes and types, and look them up."""
    dtype, numpy = DTYPES[name], np.dtype(TABLE[name][2])
    assert dtype == name
    assert name == dtype
    assert dtype in [name]
    assert dtype in ("other", dtype)
    assert {dtype: 1}[name] == {name: 1}[dtype] == 1  # type: ignore[index]
    assert str(dtype) == repr(dtype) == f"{dtype}" == name
    assert [other for other in DTYPES.values() if other == dtype] == [dtype]
    assert dtype != "nonsense"
    assert dtype != None  # noqa: E711 (what a kernel's author may write)
    assert dtype != 4
    if name != "tfloat32":
        assert dtype == numpy
        assert numpy == dtype
        assert dtype in [numpy]
        if numpy.names is None:
            assert dtype == numpy.type
            assert numpy.type == dtype


def test_tfloat32_is_not_numpys_float32() -> None:
    """It is held in float32 and has 13 bits less."""
    assert dtypes.tfloat32 != dtypes.float32
    assert dtypes.tfloat32 != np.float32
    assert dtypes.tfloat32 != np.dtype("float32")
    assert dtypes.tfloat32 not in [np.float32, dtypes.float32]


def test_pythons_numbers_are_no_32_bit_dtypes() -> None:
    """``float`` names float32 where a dtype is asked for, and compares as NumPy has it: 64 bits."""
    assert as_dtype(float) is dtypes.float32
    assert as_dtype(int) is dtypes.int32
    assert as_dtype(bool) is dtypes.bool_
    assert dtypes.float32 not in [float]
    assert dtypes.int32 not in [int]
    assert dtypes.bool_ in [bool]


@EACH
def test_every_name_of_a_dtype_finds_it(name: str) -> None:
    """Itself, its string, ``str()`` of it behind a module's name, NumPy's dtype and type."""
    dtype, numpy = DTYPES[name], np.dtype(TABLE[name][2])
    assert as_dtype(dtype) is dtype
    assert as_dtype(name) is dtype
    assert as_dtype(f"nki.language.{name}") is dtype
    if name != "tfloat32":
        assert as_dtype(numpy) is dtype
        if numpy.names is None:
            assert as_dtype(numpy.type) is dtype


@pytest.mark.parametrize("name", ["int64", "uint64"])
def test_integers_of_64_bits_stand_apart(name: str) -> None:
    """They are found by every name, and the dtypes that all versions and engines have do not list them."""
    dtype = getattr(dtypes, name)
    assert name not in DTYPES
    assert {as_dtype(each) for each in (name, f"nl.{name}", np.dtype(name), np.dtype(name).type)} == {dtype}
    assert (dtype.itemsize, dtype.is_integer, dtype.is_wide, dtype == np.dtype(name)) == (8, True, True, True)
    assert not any(each.is_wide for each in DTYPES.values())


@pytest.mark.parametrize(
    ("alias", "name"), [("bool_", "bool"), ("float8e4", "float8_e4m3"), ("float8e5", "float8_e5m2")]
)
def test_other_spellings(alias: str, name: str) -> None:
    """Names in public use beside the documented ones."""
    assert as_dtype(alias) is DTYPES[name]
    assert as_dtype(f"nl.{alias}") is DTYPES[name]


UNKNOWN: tuple[Any, ...] = (
    "float64",
    "complex64",
    "nonsense",
    "",
    "a,",
    "(2,)f4",
    np.float64,
    np.complex64,
    np.dtype("float64"),
    np.dtype(">f4"),
    np.dtype([("x", "<u4")]),
    np.dtype("S4"),
    object,
    str,
    complex,
    None,
    4,
    4.0,
    [],
    {},
    ("float32", 2),
    np.zeros(2, np.float32),
    np.float32(1),
    object(),
)


@pytest.mark.parametrize("value", UNKNOWN)
def test_what_is_no_dtype_of_nki_is_unknown(value: Any) -> None:
    """No engine has 64-bit or complex numbers; a value is no dtype, and None is not float64 as NumPy has it."""
    with pytest.raises(UnknownDType, match="is not a dtype of NKI; it has bool, int8"):
        as_dtype(value)


def test_an_object_that_equals_everything_is_unknown() -> None:
    """Values are not compared with types."""

    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    with pytest.raises(UnknownDType):
        as_dtype(Anything())


@EACH
def test_numpy_takes_it_for_a_dtype(name: str) -> None:
    """In np.dtype, np.zeros, astype, view and frombuffer, as test code uses them."""
    dtype = DTYPES[name]
    raw = np.arange(16, dtype=np.uint8)
    assert np.dtype(dtype) == dtype.dtype
    assert np.zeros(2, dtype).dtype == dtype.dtype
    assert raw.view(dtype).shape == (16 // dtype.itemsize,)
    np.testing.assert_array_equal(np.frombuffer(raw.tobytes(), dtype=dtype).view(np.uint8), raw)
    if dtype.kind != "packed":
        assert np.array([0, 1, 2]).astype(dtype).dtype == dtype.dtype
        np.testing.assert_array_equal(np.array([0, 1], np.float32).astype(dtype).astype(np.float32)[1], 1)


@pytest.mark.parametrize("name", [name for name in TABLE if TABLE[name][0] == "packed"])
def test_packed_elements_are_one_field_of_bits(name: str) -> None:
    """In NumPy, a one-field structured dtype of that name over a little-endian unsigned integer."""
    numpy = DTYPES[name].dtype
    assert numpy.names == (name,)
    assert numpy[name] == np.dtype(f"<u{DTYPES[name].itemsize}")
    bits = np.array([1, 2, 3], numpy[name])
    np.testing.assert_array_equal(bits.view(numpy)[name], bits)


@EACH
def test_copies_are_the_same_object(name: str) -> None:
    """Identity is how instructions compare dtypes."""
    dtype = DTYPES[name]
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


@given(st.sampled_from([*DTYPES.values()]), st.sampled_from([*DTYPES.values()]))
def test_equality_is_identity_among_dtypes(first: DType, second: DType) -> None:
    """And equal dtypes hash alike, as their names do."""
    assert (first == second) == (first is second) == (first.name == second.name)
    assert hash(first) == hash(first.name)


@pytest.mark.parametrize("name", OF_NUMPY)
def test_array_dtypes_compare_with_it(name: str) -> None:
    """``array.dtype == nl.x`` and ``nl.x == array.dtype``."""
    array = np.zeros(1, TABLE[name][2])
    assert array.dtype == DTYPES[name]
    assert DTYPES[name] == array.dtype
    assert as_dtype(array.dtype) is DTYPES[name]
