"""What a cast cannot hold (NK304) and where an activation function is not valid (NK305): counts as NumPy has them."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.rules.finding import Finding
from tests.isa.issued import Issued, empty, issue, tile

INTEGERS = {nl.int8: (-128, 127), nl.uint8: (0, 255), nl.int16: (-32768, 32767), nl.uint16: (0, 65535)}
F32_MAX = float(np.finfo(np.float32).max)


def only(issued: Issued, rule: str) -> Finding:
    """The one finding of an instruction, which is of that rule."""
    assert issued.rules == [rule]
    return issued.findings[0]


# --- NK304: casts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(x=arrays(np.float32, (4, 6), elements=st.floats(-70000, 70000, width=32)))
def test_numbers_beyond_an_integer_dtype_are_counted(dtype: Any, x: np.ndarray) -> None:
    """As many as round to something outside of its limits, and none is nothing to speak of."""
    low, high = INTEGERS[dtype]
    nearest = np.vectorize(round)(x.astype(float))  # Python rounds to the nearest even, too
    expected = int(np.sum((nearest < low) | (nearest > high)))
    issued = issue(nisa.tensor_copy, empty(x.shape, dtype), tile(x), rules="report")
    if expected == 0:
        assert issued.findings == []
        return
    message = only(issued, "NK304").message
    assert f"tensor_copy: {expected} of 24 elements of tensor" in message


def test_the_first_element_is_named_with_what_became_of_it() -> None:
    """Index, number and result, in the row-major order of the destination."""
    x = np.zeros((4, 8), np.float32)
    x[2, 5], x[3, 1] = 300.4, -1e9
    issued = issue(nisa.tensor_copy, empty((4, 8), nl.int8), tile(x), rules="report")
    assert only(issued, "NK304").message.endswith("saturate; the first at [2, 5]: 300.4 becomes 127")
    assert "2 of 32 elements" in issued.findings[0].message


def test_limits_are_held() -> None:
    """A clamp to the limits is meant, and so is what rounds to them."""
    x = np.array([[127.0, 127.49, -128.0, -128.5, 126.9, 0.0]], np.float32)
    issued = issue(nisa.tensor_copy, empty(x.shape, nl.int8), tile(x), rules="report")
    assert issued.findings == []
    np.testing.assert_array_equal(issued.dst, [[127, 127, -128, -128, 127, 0]])


def test_nan_and_infinity_become_integers() -> None:
    """Neither is an integer: 0 and the limit are."""
    x = np.array([[np.nan, 1.0], [2.0, np.inf]], np.float32)
    message = only(issue(nisa.tensor_copy, empty((2, 2), nl.int32), tile(x), rules="report"), "NK304").message
    assert "2 of 4 elements" in message
    assert message.endswith("the first at [0, 0]: nan becomes 0")


def test_the_nan_of_unwritten_elements_is_another_matter() -> None:
    """They travel on; numbers that are lost beside them are lost all the same."""

    def kernel(x: Any) -> None:
        half, whole = nl.ndarray((4, 8), nl.float32), nl.ndarray((4, 8), nl.int8)
        nisa.dma_copy(dst=half[:, 0:4], src=x)
        nisa.tensor_copy(dst=whole, src=half)

    for value, expected in ((1.0, []), (300.0, ["NK304"])):
        run = nkitools.simulate(kernel, np.full((4, 4), value, np.float32), rules="report")
        assert [finding.rule for finding in run.findings] == expected
    assert "16 of 32 elements" in run.findings[0].message


@pytest.mark.parametrize(
    ("dtype", "numpy_dtype"),
    [
        (nl.float16, np.float16),
        (nl.float8_e4m3, ml_dtypes.float8_e4m3),
        (nl.float8_e5m2, ml_dtypes.float8_e5m2),
        (nl.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    ],
    ids=str,
)
@given(x=arrays(np.float32, (4, 6), elements=st.floats(-1e5, 1e5, width=32)))
def test_numbers_beyond_a_narrow_float_are_counted(dtype: Any, numpy_dtype: Any, x: np.ndarray) -> None:
    """Those of which the host's own conversion, element by element, makes no number."""
    with np.errstate(all="ignore"):
        expected = sum(not math.isfinite(float(numpy_dtype(each))) for each in x.flat)
    chip = "trn3" if dtype is nl.float8_e4m3fn else "trn2"
    issued = issue(nisa.tensor_scalar, empty(x.shape, dtype), tile(x), nl.add, 0.0, rules="report", chip=chip)
    if expected == 0:
        assert issued.findings == []
        return
    assert f"{expected} of 24 elements" in only(issued, "NK304").message


def test_the_largest_float32_stands_for_an_infinity() -> None:
    """nisa.range_select's value for what is not selected, which a narrower float holds as minus infinity."""
    x = np.array([[-F32_MAX, 1.0], [F32_MAX, -np.inf]], np.float32)
    for dtype in (nl.float16, nl.float8_e5m2, nl.bfloat16):
        assert issue(nisa.tensor_copy, empty((2, 2), dtype), tile(x), rules="report").findings == []


def test_a_narrower_integer_saturates() -> None:
    """Copies between dtypes go through float32."""
    x = np.array([[5, 300, -4]], np.int32)
    message = only(issue(nisa.tensor_copy, empty((1, 3), nl.uint8), tile(x), rules="report"), "NK304").message
    assert "2 of 3 elements" in message
    assert message.endswith("the first at [0, 1]: 300.0 becomes 255")


@pytest.mark.parametrize(
    ("dtype", "value", "became"),
    [(nl.int8, 300, "127"), (nl.uint8, -1, "0"), (nl.float16, 1e6, "inf"), (nl.float8_e4m3, -300.0, "-inf")],
)
def test_a_number_that_does_not_fit_is_said_once(dtype: Any, value: float, became: str) -> None:
    """A constant is one mistake, however many elements it fills."""
    issued = issue(nisa.memset, empty((4, 4), dtype), value, rules="report")
    assert f"the value {value} becomes {became} in tensor" in only(issued, "NK304").message


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (nl.int8, 127),
        (nl.float16, 65504.0),
        (nl.float16, math.inf),
        (nl.bfloat16, -3.4028235e38),
        (nl.float16, -F32_MAX),
        (nl.float32, math.nan),
        (nl.bfloat16, 0.1),
    ],
)
def test_numbers_that_are_meant(dtype: Any, value: float) -> None:
    """Limits, infinities and NaN by name, and what is only rounded."""
    assert issue(nisa.memset, empty((4, 4), dtype), value, rules="report").findings == []


def test_a_fill_of_the_language_is_judged_alike() -> None:
    """nl.full casts floats into integers before it fills."""

    def kernel() -> None:
        nl.full((2, 2), 300, nl.int8)

    run = nkitools.simulate(kernel, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK304"]
    assert "the value 300 becomes 127" in run.findings[0].message


def test_a_lane_that_is_not_selected_is_not_cast() -> None:
    """Only what is written can be lost."""
    x = np.array([[1.0, 1e6, 3.0, 4.0]], np.float32)
    predicate = np.array([[1, 0, 1, 1]], np.uint8)
    issued = issue(
        nisa.select_reduce, empty((1, 4), nl.float16), tile(predicate), tile(x), 0.0, rules="report", chip="trn2"
    )
    assert issued.findings == []


def test_an_overflow_of_the_cast_is_no_origin_of_infinities() -> None:
    """One cause gives one finding, and NK304 is the more specific one."""
    x = np.full((4, 4), 300.0, np.float32)
    issued = issue(nisa.tensor_tensor, empty((4, 4), nl.float16), tile(x), tile(x), nl.multiply, rules="report")
    assert issued.rules == ["NK304"]


def test_full_precision_keeps_what_a_narrow_float_could_not() -> None:
    """There float16 and float8 hold float32 values; integers are integers all the same."""

    def kernel(x: Any) -> Any:
        wide, whole = nl.ndarray((2, 2), nl.float16), nl.ndarray((2, 2), nl.int8)
        source = nl.load(x)
        nisa.tensor_copy(dst=wide, src=source)
        nisa.tensor_copy(dst=whole, src=source)

    x = np.full((2, 2), 1e6, np.float32)
    for precision, lines in (("precise", 2), ("full", 1)):
        with nkitools.facts.options.override(precision=precision):
            run = nkitools.simulate(kernel, x, rules="report")
        assert [finding.rule for finding in run.findings] == ["NK304"] * lines


# --- NK305: the ranges of activation functions -----------------------------------------------------------------------

RANGES = {
    "log": (2.0**-64, 2.0**64, False),
    "sin": (0.0, math.pi, True),
    "arctan": (0.0, math.pi / 2, True),
    "sqrt": (2.0**-116, 2.0**118, False),
    "rsqrt": (2.0**-87, 2.0**97, False),
    "reciprocal": (2.0**-42, 2.0**42, True),
}


@pytest.mark.parametrize("name", RANGES)
def test_inputs_outside_of_the_documented_range_are_counted(name: str) -> None:
    """Its ends are valid, and the next numbers beyond them are not."""
    low, high, signed = RANGES[name]
    ends = [np.float32(each) for each in (high, low or 0.5)]
    beyond = [np.nextafter(ends[0], np.float32(np.inf)), np.nextafter(ends[1], np.float32(0)) if low else ends[0] * 2]
    valid = [*ends, *(-each for each in ends if signed)]
    invalid = [*beyond, *(-each for each in beyond if signed)]
    good = np.array([valid], np.float32)
    assert issue(nisa.activation, empty(good.shape), getattr(nl, name), tile(good), rules="report").findings == []
    bad = np.array([[valid[0], *invalid]], np.float32)
    message = only(
        issue(nisa.activation, empty(bad.shape), getattr(nl, name), tile(bad), rules="report"), "NK305"
    ).message
    assert f"{len(invalid)} of {bad.size} elements of the input of nl.{name} lie outside" in message
    assert "the first at [0, 1] is" in message


def test_scale_and_bias_come_before_the_function() -> None:
    """The input that counts is data * scale + bias, also where the result takes the data's place."""

    def kernel(x: Any) -> None:
        data = nl.load(x)
        nisa.activation(dst=data, op=nl.sin, data=data, scale=2.0, bias=1.0)

    x = np.array([[1.0, 4.0, -1.0]], np.float32)
    run = nkitools.simulate(kernel, x, rules="report")
    assert [finding.rule for finding in run.findings] == ["NK305"]
    assert "1 of 3 elements" in run.findings[0].message
    assert "the first at [0, 1] is 9.0" in run.findings[0].message


def test_the_root_of_zero_is_valid() -> None:
    """The table's least magnitude leaves it out; that of a variance of 0 is in every other kernel."""
    x = np.array([[0.0, 4.0]], np.float32)
    assert issue(nisa.activation, empty((1, 2)), nl.sqrt, tile(x), rules="report").findings == []


def test_what_has_no_finite_result_is_an_origin() -> None:
    """The logarithm of 0 is NK404's, that of a number too small NK305's, each for its own elements."""
    x = np.array([[0.0, 1e-30, 1.0]], np.float32)
    issued = issue(nisa.activation, empty((1, 3)), nl.log, tile(x), rules="report")
    assert sorted(issued.rules) == ["NK305", "NK404"]
    assert all("1 of 3 elements" in finding.message for finding in issued.findings)


def test_other_engines_have_no_such_ranges() -> None:
    """nisa.reciprocal runs on the Vector Engine, and nl.sin reduces its argument first."""
    x = np.array([[1e-20, 1e20, -1e15]], np.float32)
    assert issue(nisa.reciprocal, empty((1, 3)), tile(x), rules="report").findings == []

    def kernel(angles: Any) -> None:
        nl.sin(nl.load(angles))

    angles = np.linspace(-50, 50, 64, dtype=np.float32).reshape(4, 16)
    assert nkitools.simulate(kernel, angles, rules="report").findings == []


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_rules_off_say_nothing_and_change_nothing(chip: str) -> None:
    """The results are those of a run that is watched."""
    x = np.array([[9.0, 300.0, -1.0, 0.0]], np.float32)
    for op, dtype in ((nl.sin, nl.float32), (nl.copy, nl.int8), (nl.log, nl.float16)):
        off, on = (
            issue(nisa.activation, empty(x.shape, dtype), op, tile(x), rules=rules, chip=chip)
            for rules in ("off", "report")
        )
        assert off.findings == []
        assert on.findings != []
        assert off.dst.tobytes() == on.dst.tobytes()
