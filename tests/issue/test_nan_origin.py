"""Where NaN and infinities come from (NK404): who made them of numbers, said once, and not whom they reached."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.isa as legacy_isa
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Issued, bank, empty, issue, tile

MAX = np.finfo(np.float32).max


def told(kernel: Callable[..., Any], *arrays: Any, **options: Any) -> list[str]:
    """The messages of a run's findings, all of which are NK404."""
    run = nkitools.simulate(kernel, *arrays, rules="report", **options)
    assert {finding.rule for finding in run.findings} <= {"NK404"}
    return [finding.message for finding in run.findings]


def origins(issued: Issued) -> list[str]:
    """Return the messages of the findings about NaN and infinities; NK615 tells of the division beside them."""
    return [finding.message for finding in issued.findings if finding.rule != "NK615"]


# --- what is an origin -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        (nl.divide, 1.0, 0.0, "become infinite; the first at [1, 2] is inf: 1.0 / 0.0"),
        (nl.divide, 0.0, 0.0, "become NaN; the first at [1, 2] is nan: 0.0 / 0.0"),
        (nl.multiply, -3e38, 2.0, "become infinite; the first at [1, 2] is -inf: -3e+38 * 2.0"),
        (nl.subtract, math.inf, math.inf, "become NaN; the first at [1, 2] is nan: inf - inf"),
        (nl.add, 3e38, 3e38, "become infinite; the first at [1, 2] is inf: 3e+38 + 3e+38"),
        (nl.power, -8.0, 0.5, "become NaN; the first at [1, 2] is nan: power(-8.0, 0.5)"),
    ],
)
def test_the_operands_of_the_first_element_are_shown(op: Any, left: float, right: float, expected: str) -> None:
    """As arithmetic with numbers."""
    first, second = np.ones((4, 8), np.float32), np.ones((4, 8), np.float32)
    first[1, 2], second[1, 2] = left, right
    first[3, 3], second[3, 3] = left, right
    issued = issue(nisa.tensor_tensor, empty((4, 8)), tile(first), tile(second), op, rules="report")
    (message,) = origins(issued)
    assert message.startswith("tensor_tensor: 2 of 32 elements of tensor")
    assert message.endswith(expected)


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        (nl.log, -1.0, "nan: log(-1.0)"),
        (nl.log, 0.0, "-inf: log(0.0)"),
        (nl.rsqrt, 0.0, "inf: rsqrt(0.0)"),
        (nl.sqrt, -4.0, "nan: sqrt(-4.0)"),
        (nl.exp, 100.0, "inf: exp(100.0)"),
        (nl.reciprocal, -0.0, "-inf: reciprocal(-0.0)"),
        (nl.square, 1e30, "inf: square(1e+30)"),
    ],
)
def test_functions(op: Any, value: float, expected: str) -> None:
    """Of the Scalar Engine; NaN beside them is nobody's business."""
    x = np.full((2, 3), 2.0, np.float32)
    x[0, 0], x[1, 1] = np.nan, value
    issued = issue(nisa.activation, empty((2, 3)), op, tile(x), rules="report")
    assert issued.rules == ["NK404"]
    assert "1 of 6 elements" in issued.findings[0].message
    assert issued.findings[0].message.endswith(f"the first at [1, 1] is {expected}")


def test_steps_scale_and_bias_are_shown_in_their_order() -> None:
    """With numbers for vectors, too."""
    x, two = np.array([[3.0], [4.0]], np.float32), np.array([[1.0], [2.0]], np.float32)
    issued = issue(
        nisa.tensor_scalar, empty((2, 1)), tile(x), nl.subtract, 4.0, False, nl.divide, tile(two), True, rules="report"
    )
    (message,) = origins(issued)
    assert message.endswith("the first at [1, 0] is inf: 2.0 / (4.0 - 4.0)")
    issued = issue(nisa.activation, empty((2, 1)), nl.log, tile(x), tile(-2 * two), 1.0, rules="report")
    assert issued.findings[0].message.endswith("the first at [1, 0] is -inf: log(4.0 + -4.0)")


def test_an_operand_that_is_overwritten_is_called_by_its_name() -> None:
    """It can no longer be looked at; that the flag was raised tells that its elements were finite."""

    def kernel(x: Any) -> None:
        data = nl.load(x)
        nisa.reciprocal(dst=data, data=data)

    (message,) = told(kernel, np.array([[1.0, 0.0]], np.float32))
    assert message.endswith("the first at [0, 1] is inf: 1.0 / data (`data`: overwritten by the result)")


def test_a_sum_names_its_elements() -> None:
    """No single one of them made it infinite."""
    x = np.full((4, 8), 1.0, np.float32)
    x[2] = 1e38
    issued = issue(nisa.tensor_reduce, empty((4, 1)), nl.add, tile(x), 1, rules="report")
    message = re.sub("`(positional|operands)[^`]*`", "`dst`", issued.findings[0].message)
    assert message.endswith(
        "1 of 4 elements of tensor `dst` (SBUF, float32 [4, 1]) become infinite; the first at [2, 0] is "
        "inf, of finite elements (magnitudes: `data` up to 1e+38)"
    )


def test_a_scan_spreads_what_it_comes_upon() -> None:
    """From there to the end of its partition, not backwards: the overflow before it is an origin."""
    x = np.full((2, 6), 1e20, np.float32)
    x[1] = 1.0
    x[0, 4] = x[1, 2] = np.nan
    issued = issue(
        nisa.tensor_tensor_scan, empty((2, 6)), tile(x), tile(0 * x), 1.0, nl.multiply, nl.add, rules="report"
    )
    assert issued.rules == ["NK404"]
    assert "3 of 12 elements" in issued.findings[0].message
    assert "become infinite; the first at [0, 1] is inf" in issued.findings[0].message


# --- matmuls ---------------------------------------------------------------------------------------------------------


def test_a_sum_across_partitions_spreads_along_them_only() -> None:
    """An infinity that one column held hides no overflow of another."""
    values = np.ones((4, 3), np.float32)
    values[2, 0], values[:, 1] = np.inf, 3e38
    issued = issue(nisa.tensor_partition_reduce, empty((1, 3)), nl.add, tile(values), rules="report")
    assert issued.rules == ["NK404"]
    assert "1 of 3 elements" in issued.findings[0].message
    assert "the first at [0, 1] is inf" in issued.findings[0].message


@pytest.mark.parametrize("accumulate", [False, None])
def test_a_product_of_finite_numbers_overflows(accumulate: bool | None) -> None:
    """BLAS may raise no flag: the product itself is looked at."""
    stationary, moving = np.full((8, 4), 10.0, np.float32), np.ones((8, 16), np.float32)
    moving[3, 7] = 1e38
    issued = issue(nisa.nc_matmul, bank((4, 16)), tile(stationary), tile(moving), accumulate=accumulate, rules="report")
    assert issued.rules == ["NK404"]
    assert "4 of 64 elements" in issued.findings[0].message
    assert issued.findings[0].message.endswith(
        "the first at [0, 7] is inf, of finite elements (magnitudes: `stationary` up to 10.0, `moving` up to 1e+38)"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_product_spreads_what_its_operands_hold(value: float) -> None:
    """The columns of a broken operand are broken."""
    stationary, moving = np.ones((8, 4), np.float32), np.ones((8, 16), np.float32)
    stationary[2, 1] = moving[3, 7] = value
    issued = issue(nisa.nc_matmul, bank((4, 16)), tile(stationary), tile(moving), rules="report")
    assert issued.findings == []
    assert not np.isfinite(issued.dst[1, 0])


def test_a_product_may_be_as_large_as_float32() -> None:
    """Its squares overflow, which is not what is looked for."""
    stationary, moving = np.full((1, 4), 1e19, np.float32), np.full((1, 16), 1e19, np.float32)
    assert issue(nisa.nc_matmul, bank((4, 16)), tile(stationary), tile(moving), rules="report").findings == []


# --- what is none ----------------------------------------------------------------------------------------------------


def test_only_the_origin_speaks() -> None:
    """What is computed of a NaN or an infinity is silent, and so is a NaN that an infinity reported has led to."""

    def kernel(x: Any) -> None:
        data = nl.load(x)
        first, second = nl.ndarray(x.shape, nl.float32), nl.ndarray(x.shape, nl.float32)
        nisa.reciprocal(dst=first, data=data)  # infinite
        nisa.tensor_scalar(dst=second, data=first, op0=nl.multiply, operand0=2.0)
        nisa.tensor_tensor(dst=second, data1=second, data2=first, op=nl.subtract)  # inf - inf
        nisa.activation(dst=first, op=nl.exp, data=second)
        nisa.tensor_reduce(dst=first[:, 0:1], op=nl.add, data=second, axis=1)

    (message,) = told(kernel, np.array([[1.0, 0.0], [2.0, 0.0]], np.float32))
    assert message.startswith("reciprocal: 2 of 4 elements")


def test_a_line_speaks_once() -> None:
    """In the first turn of its loop; another line speaks for itself."""

    def kernel(x: Any) -> None:
        data, out = nl.load(x), nl.ndarray(x.shape, nl.float32)
        for turn in range(5):
            nisa.tensor_scalar(dst=out, data=data, op0=nl.subtract, operand0=float(turn), op1=nl.rsqrt)
        nisa.activation(dst=out, op=nl.rsqrt, data=data, scale=0.0)

    run = nkitools.simulate(kernel, np.full((2, 2), 3.0, np.float32), rules="report")
    assert [(each.rule, each.loops) for each in run.findings] == [("NK404", {"turn": 3}), ("NK404", {})]


def test_masks_of_minus_infinity_are_meant() -> None:
    """Fills raise no flag, and what softmax does with them gives numbers."""

    def kernel(x: Any) -> None:
        scores = nl.load(x)
        nisa.memset(dst=scores[:, 6:8], value=-math.inf)
        largest, total = nl.ndarray((4, 1), nl.float32), nl.ndarray((4, 1), nl.float32)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1, negate=True)
        nisa.activation(dst=scores, op=nl.exp, data=scores, bias=largest)
        nisa.tensor_reduce(dst=total, op=nl.add, data=scores, axis=1)
        nisa.reciprocal(dst=total, data=total)

    assert told(kernel, np.ones((4, 8), np.float32)) == []


def test_a_row_that_is_masked_whole_makes_nan() -> None:
    """inf - inf, of infinities that nobody has reported as they were meant: the NaN comes from here."""

    def kernel(x: Any) -> None:
        scores, largest = nl.load(x), nl.ndarray((4, 1), nl.float32)
        nisa.memset(dst=scores[0:1, :], value=-math.inf)
        shifted = nl.ndarray((4, 8), nl.float32)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_scalar(dst=shifted, data=scores, op0=nl.subtract, operand0=largest)

    (message,) = told(kernel, np.ones((4, 8), np.float32))
    assert message.endswith(
        "8 of 32 elements of tensor `shifted` (SBUF, float32 [4, 8]) become NaN; the first at "
        "[0, 0] is nan: -inf - -inf"
    )


def test_infinities_within_an_instruction_may_vanish() -> None:
    """Only what is written counts: 1 / inf is 0."""
    x = np.full((2, 2), 100.0, np.float32)
    issued = issue(
        nisa.tensor_scalar, empty((2, 2)), tile(x), nl.multiply, float(MAX), False, nl.reciprocal, None, rules="report"
    )
    assert issued.findings == []
    assert (issued.dst == 0).all()


def test_unwritten_elements_are_another_matter() -> None:
    """NK401 has said it, and the NaN that stands for them is no origin."""

    def kernel(x: Any) -> Any:
        result, total = nl.ndarray((4, 1), nl.float32, buffer=nl.shared_hbm), nl.ndarray((4, 1), nl.float32)
        half, out = nl.ndarray((4, 8), nl.float32), nl.ndarray((4, 8), nl.float32)
        nisa.dma_copy(dst=half[:, 0:4], src=x)
        nisa.activation(dst=out, op=nl.log, data=half)
        nisa.tensor_reduce(dst=total, op=nl.add, data=out, axis=1)
        nisa.dma_copy(dst=result, src=total)
        return result

    run = nkitools.simulate(kernel, np.ones((4, 4), np.float32), rules="report")
    assert [finding.rule for finding in run.findings] == ["NK401"]
    assert "undefined elements came from `half` made at line" in run.findings[0].message


@given(st.data())
def test_of_elementwise_instructions_numpy_decides(data: st.DataObject) -> None:
    """A finding where NumPy makes what is not finite of what is, with as many elements; else none."""
    numbers = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e30, -3e38, 1e-40, math.inf, -math.inf, math.nan])
    left, right = (
        np.array(data.draw(st.lists(numbers, min_size=6, max_size=6)), np.float32).reshape(2, 3) for _ in range(2)
    )
    name = data.draw(st.sampled_from(["add", "subtract", "multiply", "divide", "maximum", "minimum"]))
    with np.errstate(all="ignore"):
        result = getattr(np, name)(left, right)
    operands = np.isnan(left) | np.isnan(right), np.isinf(left) | np.isinf(right)
    nan = np.isnan(result) & ~operands[0]
    infinite = np.isinf(result) & ~operands[0] & ~operands[1]
    issued = issue(nisa.tensor_tensor, empty((2, 3)), tile(left), tile(right), getattr(nl, name), rules="report")
    if not (nan | infinite).any():
        assert origins(issued) == []
        return
    (message,) = origins(issued)
    assert f"{np.count_nonzero(nan | infinite)} of 6 elements" in message
    assert ("NaN" in message, "infinite" in message) == (nan.any(), infinite.any())


# --- levels, precisions and dialects ---------------------------------------------------------------------------------


def test_a_warning_does_not_stop_a_run() -> None:
    """It is collected at the level `error`, and raised at `strict`."""

    def kernel(x: Any) -> None:
        data, out = nl.load(x), nl.ndarray(x.shape, nl.float32)
        nisa.reciprocal(dst=out, data=data)

    zeros = np.zeros((2, 2), np.float32)
    assert [each.rule for each in nkitools.simulate(kernel, zeros, rules="error").findings] == ["NK404"]
    assert nkitools.simulate(kernel, zeros, rules="off").findings == []
    with pytest.raises(nkitools.KernelError, match="NK404"):
        nkitools.simulate(kernel, zeros, rules="strict")


def test_the_host_sees_its_own_errors_again() -> None:
    """What NumPy does about floating-point errors is what it was, after a run and after one that failed."""
    before = np.geterr()

    def kernel(x: Any) -> None:
        nl.load(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nkitools.simulate(kernel, np.zeros((2, 2), np.float32))
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(1))


def test_full_precision_finds_the_same() -> None:
    """On the float32 likes of low-precision tiles, under the names of these."""

    def kernel(x: Any) -> None:
        data, out = nl.load(x, dtype=nl.bfloat16), nl.ndarray(x.shape, nl.bfloat16)
        nisa.activation(dst=out, op=nl.log, data=data)

    for precision in ("precise", "full"):
        with nkitools.facts.options.override(precision=precision):
            (message,) = told(kernel, np.array([[1.0, -3.0]], np.float32))
        assert message.endswith(
            "1 of 2 elements of tensor `out` (SBUF, bfloat16 [1, 2]) become NaN; the first at [0, 1] is nan: log(-3.0)"
        )


def test_undefined_lanes_of_the_legacy_dialect_do_not_speak() -> None:
    """A tile that is loaded in part is computed on whole; only lanes that are defined count."""

    @legacy.jit
    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray((128, 64), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
        i_p, i_f = legacy_nl.mgrid[0:128, 0:64]
        tile = legacy_nl.ndarray((128, 64), dtype=x.dtype, buffer=legacy_nl.sbuf)
        tile[i_p, i_f] = legacy_nl.load(x[i_p, i_f], mask=i_p < 100)
        inverse = legacy_isa.reciprocal(legacy_nl.subtract(tile, 1.0))
        legacy_nl.store(out[i_p, i_f], inverse, mask=i_p < 100)
        legacy_nl.store(out[i_p, i_f], legacy_nl.zeros((128, 64), dtype=x.dtype), mask=i_p >= 100)
        return out

    x = np.full((100, 64), 3.0, np.float32)
    for _ in range(3):  # what lies in memory that was never written differs from run to run
        assert told(kernel, x) == []
    x[7, 9] = 1.0
    (message,) = told(kernel, x)
    assert "1 of 8192 elements" in message
    assert "the first at [7, 9] is inf" in message


def test_what_a_cast_has_made_infinite_is_followed_no_further() -> None:
    """NK304 has spoken; inf - inf comes of that."""

    def kernel(x: Any) -> None:
        narrow, out = nl.ndarray(x.shape, nl.float16), nl.ndarray(x.shape, nl.float32)
        nisa.tensor_copy(dst=narrow, src=nl.load(x))
        nisa.tensor_tensor(dst=out, data1=narrow, data2=narrow, op=nl.subtract)

    run = nkitools.simulate(kernel, np.full((2, 2), 1e6, np.float32), rules="report")
    assert [finding.rule for finding in run.findings] == ["NK304"]


def test_infinity_times_nothing() -> None:
    """A mask of infinities in a product makes NaN, and the message calls none of them finite."""
    stationary, moving = np.zeros((8, 4), np.float32), np.ones((8, 16), np.float32)
    moving[3, 7] = np.inf
    issued = issue(nisa.nc_matmul, bank((4, 16)), tile(stationary), tile(moving), rules="report")
    assert issued.rules == ["NK404"]
    assert "4 of 64 elements" in issued.findings[0].message
    assert ", of elements that are not NaN (magnitudes: `stationary` up to 0.0" in issued.findings[0].message
