"""When two numbers are the same: by the author's numbers, else by the step of the coarser dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkitools.chip.dtypes import DTYPES
from nkitools.comparison.compared_arrays import compared, numbers_of
from nkitools.comparison.dtype_table import tolerance_of
from nkitools.comparison.rule import Rule, stated_rule

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
    rtol, atol = tolerance_of([name])
    assert rtol == (steps * 2.0**-bits if steps else 0)
    assert (atol > 0) == bool(steps)


def test_the_coarser_dtype_decides_unless_numbers_are_stated() -> None:
    """Of two dtypes the low-precision one; of two numbers the one that is not stated is 0."""
    assert Rule().numbers(["float32", "bfloat16", "int32"]) == tolerance_of(["bfloat16"])
    assert Rule(rtol=0.5).numbers(["int32"]) == (0.5, 0.0)
    assert Rule(atol=0.25).numbers(["float32"]) == (0.0, 0.25)
    assert tolerance_of(["float4_e2m1fn"])[0] == 0.5


def test_neighbours_of_a_narrow_dtype_are_the_same_and_distant_ones_are_not() -> None:
    """A value between two steps may be rounded to either of them, at every magnitude."""
    codes = np.arange(0x00, 0x70, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)  # from 0 on, subnormal ones first
    assert compared(codes[:-1], codes[1:]).count == 0
    assert compared(codes[:-4], codes[4:]).wrong.all()


def test_special_values() -> None:
    """NaN is NaN, an infinity is itself and nothing else; zeros are equal."""
    nan, inf = np.nan, np.inf
    first = np.array([nan, nan, inf, inf, inf, 0.0, 1.0])
    second = np.array([nan, 1.0, inf, -inf, 1.0, -0.0, nan])
    found = compared(first, second, Rule(rtol=0.1))
    assert found.wrong.tolist() == [False, True, False, True, True, False, True]
    assert (found.first, found.worst, found.largest, found.count) == ((1,), (1,), None, 4)
    assert compared(first, first, Rule(rtol=0.1, equal_nan=False)).wrong.tolist() == [True, True, *[False] * 4, False]


def test_the_first_the_worst_and_how_many() -> None:
    """Indices are those of the array, distances absolute; the text says all of it."""
    expected = np.zeros((2, 3))
    found = compared(np.array([[0, 0.5, 0], [2, 0, 0]]), expected, Rule(atol=0.1))
    assert (found.first, found.worst, found.largest, found.count, found.size) == ((0, 1), (1, 0), 2.0, 2, 6)
    assert found.text("out").splitlines() == [
        "out: 2 of 6 elements differ by more than atol=0.1, rtol=0",
        "first wrong: out[0, 1] is 0.5, expected 0.0",
        "worst wrong: out[1, 0] is 2.0, expected 0.0",
    ]
    assert compared(expected, expected).text("out") == ""


def test_packed_elements_are_compared_by_their_codes() -> None:
    """Every bit counts."""
    packed = np.array([1, 2**31 + 5], "<u4").view([("float8_e4m3fn_x4", "<u4")])
    assert numbers_of(packed).tolist() == [1.0, 2**31 + 5]
    other = np.array([1, 2**31 + 4], "<u4").view([("float8_e4m3fn_x4", "<u4")])
    assert compared(packed, other).first == (1,)
    first = compared(packed, other).text("out").splitlines()[1]
    assert first == "first wrong: out[1] is 0x80000005, expected 0x80000004"


def test_integers_of_64_bits_are_compared_exactly() -> None:
    """The next number above 2**53 is another one, though float64 has it not."""
    assert compared(np.array([2**53 + 1]), np.array([2**53])).count == 1
    assert compared(np.array([2**63], np.uint64), np.array([-(2**63)])).count == 1


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        (np.zeros((2, 3)), np.zeros(3), "shape [2, 3], expected [3]"),
        (np.zeros((2, 3)), np.float64(0), "shape [2, 3], expected []"),
        (np.zeros((0, 3)), np.zeros((3, 0)), "shape [0, 3], expected [3, 0]"),
        (np.zeros(1), np.array(["a"]), "float64 and <U1 cannot be compared: <U1 holds no numbers"),
        (np.zeros(1), np.array([None]), "float64 and object cannot be compared: object holds no numbers"),
    ],
)
def test_what_cannot_be_compared_does_not_agree(actual: Any, expected: Any, said: str) -> None:
    """Nothing is broadcast, and what holds no numbers is no number."""
    found = compared(actual, expected, Rule(atol=1e9))
    assert (found.agree, found.message, found.size) == (False, said, 0)


def test_empty_arrays_of_one_shape_agree() -> None:
    """There is no element to differ."""
    assert compared(np.zeros((0, 3), np.float32), np.zeros((0, 3))).agree


@pytest.mark.parametrize("value", [np.inf, np.nan, -1e-3, True, np.True_, "1e-3", None.__class__])
def test_a_tolerance_is_a_finite_number(value: Any) -> None:
    """What allows everything, and what is no number, is refused with its name."""
    with pytest.raises(ValueError, match=r"^rtol: must be a finite number from 0 on, it is "):
        stated_rule(value, None)
    with pytest.raises(ValueError, match=r"^atol: must be a finite number from 0 on, it is "):
        stated_rule(0.1, value)
    assert stated_rule(np.float32(0.5), 0) == Rule(0.5, 0.0)
