"""nisa.tensor_scalar_cumulative and nisa.tensor_tensor_scan against loops over the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample
from tests.isa.test_fused import BINARY, rounded

COMMANDS = nisa.reduce_cmd
RUNNING: dict[str, tuple[Any, float]] = {
    "add": (np.add, 0),
    "subtract": (np.subtract, 0),
    "multiply": (np.multiply, 1),
    "maximum": (np.maximum, -np.inf),
    "minimum": (np.minimum, np.inf),
}


def cumulative(values: np.ndarray, op1: str, start: Any) -> np.ndarray:
    """``reg = op1(values[i], reg)`` element by element, rounded to float32 in each step."""
    rows = values.reshape(values.shape[0], -1)
    register = np.broadcast_to(np.asarray(start, np.float32), (rows.shape[0],))
    results = []
    for column in rows.T:
        register = rounded(RUNNING[op1][0], column, register)
        results.append(register)
    return np.stack(results, axis=1).reshape(values.shape)


# --- tensor_scalar_cumulative ----------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(sorted(RUNNING)),
    st.booleans(),
    st.sampled_from([(32, 9), (128, 3, 5), (1, 1), (64, 60)]),
    st.integers(0, 99),
)
def test_each_element_continues_the_one_before(
    op0: str, op1: str, vector: bool, shape: tuple[int, ...], seed: int
) -> None:
    """``op1(src <op0> imm0, the one before)`` in order over all free dimensions, from the identity of op1."""
    x, v = sample(shape, seed=seed, low=0.5, high=1.5), sample((shape[0], 1), seed=seed + 1, low=0.5, high=1.5)
    operand = v.reshape(shape[0], *[1] * (len(shape) - 1)) if vector else np.float32(1.25)
    expected = cumulative(rounded(BINARY[op0], x, operand), op1, RUNNING[op1][1])
    issued = issue(
        nisa.tensor_scalar_cumulative,
        dst=empty(shape),
        src=tile(x),
        op0=getattr(nl, op0),
        op1=getattr(nl, op1),
        imm0=tile(v) if vector else 1.25,
    )
    np.testing.assert_array_equal(issued.dst, expected)


def test_the_operator_before_the_running_one_may_be_unary() -> None:
    """Its immediate is 0."""
    x = sample((32, 8))
    issued = issue(nisa.tensor_scalar_cumulative, empty(x.shape), tile(x), nl.abs, nl.maximum, 0.0)
    np.testing.assert_array_equal(issued.dst, np.maximum.accumulate(np.abs(x), axis=1))


@pytest.mark.parametrize("op1", RUNNING)
@pytest.mark.parametrize("loaded", ["number", "vector"])
def test_registers_are_reset_loaded_and_continued(op1: str, loaded: str) -> None:
    """The three commands one after the other; what the destination rounds, the register does not."""
    x, start = sample((32, 6), low=0.5, high=1.5), sample((32, 1), seed=1)
    if loaded == "number":
        start[:] = 1.75

    def body() -> list[np.ndarray]:
        src, first = placed(tile(x)), placed(tile(start))
        seen = []
        for command, imm1 in (
            (COMMANDS.reset_reduce, None),
            (COMMANDS.reduce, None),
            (COMMANDS.load_reduce, first if loaded == "vector" else 1.75),
            (COMMANDS.reduce, 99.0),  # imm1 has a part in load_reduce only
        ):
            dst = placed(empty(x.shape, nl.bfloat16))
            nisa.tensor_scalar_cumulative(dst, src, nl.add, getattr(nl, op1), 0.125, imm1, command)
            seen.append(np.array(dst.array))
        return seen

    values = x + np.float32(0.125)
    twice = np.concatenate([values, values], axis=1)
    reset = cumulative(twice, op1, RUNNING[op1][1])
    load = cumulative(twice, op1, start[:, 0])
    for found, expected in zip(inside(body), (reset[:, :6], reset[:, 6:], load[:, :6], load[:, 6:]), strict=True):
        np.testing.assert_array_equal(found, held(expected, nl.bfloat16))


@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16, nl.float8_e4m3, nl.int8, nl.uint16], ids=str)
def test_the_state_is_float32_whatever_the_dtypes(dtype: Any) -> None:
    """The running sum of 300 ones reaches 300 where dst can hold it, and saturates or rounds on write only."""
    ones = held(np.ones((4, 300)), dtype)
    issued = issue(nisa.tensor_scalar_cumulative, empty(ones.shape, dtype), tile(ones), nl.multiply, nl.add, 1.0)
    np.testing.assert_array_equal(issued.dst, held(np.tile(np.arange(1, 301), (4, 1)), dtype))


def test_in_place_and_of_views() -> None:
    """``dst`` may be ``src``; other dimensions, from PSUM."""
    x = sample((32, 4, 8))
    data = tile(x)
    expected = cumulative(x, "add", 0)
    np.testing.assert_array_equal(
        issue(nisa.tensor_scalar_cumulative, data, data, nl.multiply, nl.add, 1.0).dst, expected
    )
    turned = tile(x, "psum", view=lambda t: t.permute((0, 2, 1)))
    issued = issue(nisa.tensor_scalar_cumulative, empty((32, 32)), turned, nl.multiply, nl.add, 1.0)
    np.testing.assert_array_equal(issued.dst, cumulative(x.transpose(0, 2, 1), "add", 0).reshape(32, 32))
    assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", 64)


X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
N = np.ones((32, 8), np.int32)
TALL = np.ones((256, 2), np.float32)
PACKED = np.zeros((32, 8), nl.float8_e5m2_x4.dtype)
DST = empty((32, 8))
LOAD = {"reduce_cmd": COMMANDS.load_reduce}
Cases = dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]]
CUMULATIVE_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X), nl.add, nl.add, 0.0), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), tile(X), nl.add, nl.add, 0.0), {}),
    "256 partitions": ("NK101", "`src`", (empty(TALL.shape), tile(TALL), nl.add, nl.add, 0.0), {}),
    "HBM": ("NK201", "`src`", (DST, tile(X, "hbm"), nl.add, nl.add, 0.0), {}),
    "int32": ("NK301", "`src`", (DST, tile(N), nl.add, nl.add, 0.0), {}),
    "uint32": ("NK301", "`dst`", (empty((32, 8), nl.uint32), tile(X), nl.add, nl.add, 0.0), {}),
    "tfloat32": ("NK301", "`dst`", (empty((32, 8), nl.tfloat32), tile(X), nl.add, nl.add, 0.0), {}),
    "packed": ("NK301", "`src`", (DST, tile(PACKED), nl.add, nl.add, 0.0), {}),
    "imm0's dtype": ("NK301", "`imm0`", (DST, tile(X), nl.add, nl.add, tile(N[:, :1])), {}),
    "imm0's size": ("NK109", "`imm0`", (DST, tile(X), nl.add, nl.add, tile(X)), {}),
    "imm0's partitions": ("NK111", "`imm0`", (DST, tile(X), nl.add, nl.add, tile(V[:1])), {}),
    "imm1's dtype": ("NK301", "`imm1`", (DST, tile(X), nl.add, nl.add, 0.0, tile(N[:, :1])), LOAD),
    "imm1's size": ("NK109", "`imm1`", (DST, tile(X), nl.add, nl.add, 0.0, tile(X)), LOAD),
    "bits": ("NK306", "`op0`", (DST, tile(X), nl.bitwise_or, nl.add, 0), {}),
    "running divide": ("NK306", "`op1`", (DST, tile(X), nl.add, nl.divide, 0.0), {}),
    "running bits": ("NK306", "`op1`", (DST, tile(X), nl.add, nl.bitwise_or, 0.0), {}),
    "no imm0": ("NK609", "`imm0`", (DST, tile(X), nl.add, nl.add, None), {}),
    "no imm1": ("NK609", "`imm1`", (DST, tile(X), nl.add, nl.add, 0.0), LOAD),
    "immediate of a unary": ("NK609", "`imm0`", (DST, tile(X), nl.abs, nl.add, 1.0), {}),
    "idle": ("NK609", "`reduce_cmd`", (DST, tile(X), nl.add, nl.add, 0.0), {"reduce_cmd": COMMANDS.idle}),
    "reset": ("NK609", "`reduce_cmd`", (DST, tile(X), nl.add, nl.add, 0.0), {"reduce_cmd": COMMANDS.reset}),
}


@pytest.mark.parametrize("case", CUMULATIVE_REFUSED)
def test_what_tensor_scalar_cumulative_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = CUMULATIVE_REFUSED[case]
    finding = refusal(nisa.tensor_scalar_cumulative, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


# --- tensor_tensor_scan ----------------------------------------------------------------------------------------------


def scan(a: np.ndarray, b: np.ndarray, start: Any, ops: tuple[str, str], reverse: tuple[bool, bool]) -> np.ndarray:
    """``op1(op0(a[i], before), b[i])`` element by element, each step rounded to float32."""
    state = np.broadcast_to(np.asarray(start, np.float32).reshape(-1), (a.shape[0],))
    left, right, results = a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1), []
    for i in range(left.shape[1]):
        state = rounded(BINARY[ops[0]], left[:, i], state, reverse[0])
        state = rounded(BINARY[ops[1]], state, right[:, i], reverse[1])
        results.append(state)
    return np.stack(results, axis=1).reshape(a.shape)


@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(sorted(BINARY)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(32, 9), (128, 3, 5), (1, 1), (64, 40)]),
    st.integers(0, 99),
)
def test_a_scan_is_its_loop(
    op0: str, op1: str, reverse0: bool, reverse1: bool, vector: bool, ones: bool, shape: tuple[int, ...], seed: int
) -> None:
    """Bit for bit, with the sides of each operator swapped on its own; data0 of ones is no exception."""
    a, b = sample(shape, seed=seed, low=-1.5, high=1.5), sample(shape, seed=seed + 1)
    v = sample((shape[0], 1), seed=seed + 2)
    if ones:
        a[:] = 1
    expected = scan(a, b, v if vector else 0.5, (op0, op1), (reverse0, reverse1))
    issued = issue(
        nisa.tensor_tensor_scan,
        dst=empty(shape),
        data0=tile(a),
        data1=tile(b),
        initial=tile(v) if vector else 0.5,
        op0=getattr(nl, op0),
        op1=getattr(nl, op1),
        reverse0=reverse0,
        reverse1=reverse1,
    )
    np.testing.assert_array_equal(issued.dst, expected)


@given(st.integers(1, 39), st.integers(0, 99))
def test_a_scan_in_two_parts_is_the_whole_scan(cut: int, seed: int) -> None:
    """The last column of the first part is the initial value of the second."""
    a, b = sample((64, 40), seed=seed), sample((64, 40), seed=seed + 1)

    def body() -> tuple[np.ndarray, np.ndarray]:
        data0, data1 = placed(tile(a)), placed(tile(b))
        whole, parts = placed(empty(a.shape)), placed(empty(a.shape))
        nisa.tensor_tensor_scan(whole, data0, data1, 0, nl.multiply, nl.add)
        nisa.tensor_tensor_scan(parts[:, :cut], data0[:, :cut], data1[:, :cut], 0, nl.multiply, nl.add)
        last = parts[:, cut - 1 : cut]
        nisa.tensor_tensor_scan(parts[:, cut:], data0[:, cut:], data1[:, cut:], last, nl.multiply, nl.add)
        return np.array(whole.array), np.array(parts.array)

    whole, parts = inside(body)
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.uint8], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_a_scan_widens_any_dtype_and_casts_on_write(dtype: Any, result: Any) -> None:
    """All operands of any dtype, the initial value too; the state is float32 in between."""
    a, b = sample((16, 12), dtype, 1, 0, 2), sample((16, 12), dtype, 2, -4, 4)
    v = sample((16, 1), dtype, 3)
    expected = scan(
        float64(a).astype(np.float32), float64(b).astype(np.float32), v, ("multiply", "add"), (False, False)
    )
    issued = issue(
        nisa.tensor_tensor_scan,
        empty(a.shape, result),
        tile(a, dtype=dtype),
        tile(b, dtype=dtype),
        tile(v, dtype=dtype),
        nl.multiply,
        nl.add,
    )
    np.testing.assert_array_equal(issued.dst, held(expected, result))


def test_a_scan_in_place_and_of_views() -> None:
    """The destination may be either input; one input in PSUM, of other dimensions."""
    a, b = sample((32, 4, 8)), sample((32, 32), seed=1)
    turned = tile(a, "psum", view=lambda t: t.permute((0, 2, 1)))
    data1 = tile(b)
    expected = scan(a.transpose(0, 2, 1).reshape(32, 32), b, 1.0, ("multiply", "add"), (False, False))
    for dst in (data1, empty((32, 32))):
        issued = issue(nisa.tensor_tensor_scan, dst, turned, data1, 1.0, nl.multiply, nl.add)
        np.testing.assert_array_equal(issued.dst, expected)
    assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", 64)


SCAN_REFUSED: Cases = {
    "partitions": ("NK102", "`data1`", (DST, tile(X), tile(X[:16]), 0, nl.multiply, nl.add), {}),
    "one partition": ("NK111", "`data1`", (DST, tile(X), tile(X[:1]), 0, nl.multiply, nl.add), {}),
    "elements": ("NK109", "`data1`", (DST, tile(X), tile(X[:, :4]), 0, nl.multiply, nl.add), {}),
    "destination": ("NK109", "`dst`", (empty((32, 4)), tile(X), tile(X), 0, nl.multiply, nl.add), {}),
    "256 partitions": ("NK101", "`data0`", (empty(TALL.shape), tile(TALL), tile(TALL), 0, nl.multiply, nl.add), {}),
    "both in PSUM": ("NK201", "both in PSUM", (DST, tile(X, "psum"), tile(X, "psum"), 0, nl.multiply, nl.add), {}),
    "HBM": ("NK201", "`data0`", (DST, tile(X, "hbm"), tile(X), 0, nl.multiply, nl.add), {}),
    "initial's size": ("NK109", "`initial`", (DST, tile(X), tile(X), tile(X), nl.multiply, nl.add), {}),
    "initial's partitions": ("NK102", "`initial`", (DST, tile(X), tile(X), tile(V[:16]), nl.multiply, nl.add), {}),
    "packed": ("NK301", "`data1`", (DST, tile(X), tile(PACKED), 0, nl.multiply, nl.add), {}),
    "packed initial": ("NK301", "`initial`", (DST, tile(X), tile(X), tile(PACKED[:, :1]), nl.multiply, nl.add), {}),
    "bits": ("NK306", "`op0`", (DST, tile(N), tile(N), 0, nl.bitwise_and, nl.add), {}),
    "unary": ("NK306", "`op1`", (DST, tile(X), tile(X), 0, nl.multiply, nl.square), {}),
    "no initial": ("NK609", "`initial`", (DST, tile(X), tile(X), None, nl.multiply, nl.add), {}),
}


@pytest.mark.parametrize("case", SCAN_REFUSED)
def test_what_tensor_tensor_scan_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = SCAN_REFUSED[case]
    finding = refusal(nisa.tensor_tensor_scan, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_magnitude_operators_came_with_neuron_core_v4() -> None:
    """NK606 on the generations before, of a running operator as of one in a scan."""
    for instruction, args in (
        (nisa.tensor_tensor_scan, (DST, tile(X), tile(X), 0, nl.multiply, nl.abs_max)),
        (nisa.tensor_scalar_cumulative, (DST, tile(X), nl.abs_max, nl.add, 0.0)),
    ):
        assert issue(instruction, *args, chip="trn3").rules == []
        assert refusal(instruction, *args, chip="trn2").rule == "NK606"
