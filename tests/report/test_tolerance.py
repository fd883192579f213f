"""When two numbers are the same: by the step of the coarser dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkitools.chip.dtypes import DTYPES
from nkitools.report.tolerance import Tolerance, diverging, numbers_of

# Mantissa bits, of the formats' own documents.
BITS = {
    "float32": (23, 16),
    "tfloat32": (10, 2),
    "float16": (10, 2),
    "bfloat16": (7, 2),
    "float8_e4m3": (3, 1),
    "float8_e4m3fn": (3, 1),
    "float8_e5m2": (2, 1),
}


@pytest.mark.parametrize("name", DTYPES)
def test_the_table(name: str) -> None:
    """So many steps of two to the minus mantissa bits; counted and packed values are exact."""
    bits, steps = BITS.get(name, (0, 0))
    rtol, atol = Tolerance().of([name])
    assert rtol == (steps * 2.0**-bits if steps else 0)
    assert (atol > 0) == bool(steps)


def test_the_coarser_dtype_decides_unless_something_else_is_said() -> None:
    """Of two dtype modes the low-precision one; an option holds for all."""
    assert Tolerance().of(["float32", "bfloat16", "int32"]) == Tolerance().of(["bfloat16"])
    assert Tolerance(rtol=0.5).of(["int32"]) == (0.5, 0.0)
    assert Tolerance(atol=0.0).of(["float32"]) == (16 * 2.0**-23, 0.0)
    assert Tolerance().of(["float4_e2m1fn"])[0] == 0.5


def test_neighbours_of_a_narrow_dtype_are_the_same_and_the_next_but_one_is_not() -> None:
    """A value between two steps may be rounded to either of them, at every magnitude."""
    codes = np.arange(0x00, 0x70, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)  # from 0 on, subnormal ones first
    values = numbers_of(codes)
    rtol, atol = Tolerance().of(["float8_e4m3fn"])
    assert not diverging(values[:-1], values[1:], rtol, atol).any()
    assert diverging(values[:-3], values[3:], rtol, atol).all()


def test_special_values() -> None:
    """NaN is NaN, an infinity is itself and nothing else; zeros are equal."""
    nan, inf = np.nan, np.inf
    first = np.array([nan, nan, inf, inf, inf, 0.0, 1.0])
    second = np.array([nan, 1.0, inf, -inf, 1.0, -0.0, nan])
    assert diverging(first, second, 0.1, 0.0).tolist() == [False, True, False, True, True, False, True]


def test_packed_elements_are_compared_by_their_codes() -> None:
    """Every bit counts."""
    packed = np.array([1, 2**31 + 5], "<u4").view([("float8_e4m3fn_x4", "<u4")])
    assert numbers_of(packed).tolist() == [1.0, 2**31 + 5]
    assert numbers_of(np.array([1 + 2j])).tolist() == [[1.0, 2.0]]
