"""nisa.activation_reduce and nisa.activate2 against float64 references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import ACTIVATIONS, FLOATS, INTEGERS, float64, held, sample
from tests.isa.test_fused import rounded

pytestmark = pytest.mark.usefixtures("each_version")

COMMANDS = nisa.reduce_cmd
X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
TALL = np.ones((256, 2), np.float32)
PACKED = np.zeros((32, 8), nl.float8_e5m2_x4.dtype)
DST = empty((32, 8))
SUM = empty((32, 1))
Cases = dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]]

# --- activation_reduce -----------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["exp", "square", "copy", "tanh", "relu"]),
    st.sampled_from([nl.float32, nl.bfloat16, nl.float8_e5m2, nl.int8]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_is_activation_with_reset_reduce(name: str, dtype: Any, bias: bool, scale: bool, seed: int) -> None:
    """The same bits in dst and in reduce_res, "equivalent to calling nisa.activation"."""
    x, b, s = sample((64, 3, 5), seed=seed), sample((64, 1), seed=seed + 1), sample((64, 1), seed=seed + 2)
    keywords = {"bias": tile(b) if bias else None, "scale": tile(s) if scale else 0.5}
    op, dst, result = getattr(nl, name), empty(x.shape, dtype), empty((64, 1))
    ours = issue(nisa.activation_reduce, dst, op, tile(x), nl.add, result, **keywords)
    theirs = issue(
        nisa.activation,
        dst,
        op,
        tile(x),
        reduce_op=nl.add,
        reduce_res=result,
        reduce_cmd=COMMANDS.reset_reduce,
        **keywords,
    )
    for operand in ("dst", "reduce_res"):
        np.testing.assert_array_equal(ours.views[operand], theirs.views[operand])
    assert ours.instruction.cycles == theirs.instruction.cycles


def test_the_sum_of_squares_of_a_normalisation() -> None:
    """Sum of ``square(x)`` in float32 against float64, with a bfloat16 destination."""
    x = sample((128, 1024), nl.bfloat16)
    issued = issue(nisa.activation_reduce, empty(x.shape, nl.bfloat16), nl.square, tile(x), nl.add, empty((128, 1)))
    np.testing.assert_array_equal(issued.dst, held(float64(x) ** 2, nl.bfloat16))
    wanted = (float64(x) ** 2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(issued.views["reduce_res"], wanted, rtol=1e-6)
    assert (issued.instruction.engine, issued.instruction.cycles) == ("scalar", 1024 + 64)


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
def test_a_destination_of_step_zero_keeps_the_last_result(dtype: Any) -> None:
    """So production kernels throw the results away; the sum is of all of them all the same."""
    x = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
    narrow = empty((4, 1), dtype, view=lambda t: t.ap([[1, 4], [0, 8]]))
    issued = issue(nisa.activation_reduce, narrow, nl.square, tile(x), nl.add, empty((4, 1)), scale=2.0)
    np.testing.assert_array_equal(issued.storages["dst"], held(4 * x[:, 7:] ** 2, dtype))
    np.testing.assert_array_equal(issued.views["reduce_res"], (4 * x**2).sum(axis=1, keepdims=True))


def test_without_a_result_tile_the_sum_stays_in_the_registers() -> None:
    """It resets them first; nisa.activation goes on from them and reads them out."""

    def body() -> np.ndarray:
        x, dst, result = placed(tile(X)), placed(DST), placed(SUM)
        for _ in range(2):
            nisa.activation_reduce(dst, nl.copy, x, nl.add, None, scale=3.0)
        nisa.activation(dst, nl.copy, x, reduce_op=nl.add, reduce_res=result, reduce_cmd=COMMANDS.reduce)
        return np.array(result.array)

    np.testing.assert_array_equal(inside(body), np.full((32, 1), 24 + 8))


ACTIVATION_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), nl.exp, tile(X), nl.add, SUM), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), nl.exp, tile(X), nl.add, SUM), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), nl.exp, tile(TALL), nl.add, None), {}),
    "HBM": ("NK201", "`data`", (DST, nl.exp, tile(X, "hbm"), nl.add, SUM), {}),
    "result in HBM": ("NK201", "`reduce_res`", (DST, nl.exp, tile(X), nl.add, empty((32, 1), memory="hbm")), {}),
    "result's size": ("NK109", "`reduce_res`", (DST, nl.exp, tile(X), nl.add, empty((32, 2))), {}),
    "result's partitions": ("NK102", "`reduce_res`", (DST, nl.exp, tile(X), nl.add, empty((16, 1))), {}),
    "scale's dtype": (
        "NK301",
        "`scale`",
        (DST, nl.exp, tile(X), nl.add, SUM),
        {"scale": tile(V.astype(nl.bfloat16.dtype))},
    ),
    "bias's dtype": ("NK301", "`bias`", (DST, nl.exp, tile(X), nl.add, SUM, tile(V, dtype=nl.tfloat32)), {}),
    "bias's partitions": ("NK111", "`bias`", (DST, nl.exp, tile(X), nl.add, SUM, tile(V[:1])), {}),
    "packed": ("NK301", "`data`", (DST, nl.exp, tile(PACKED), nl.add, SUM), {}),
    "operator": ("NK306", "`op`", (DST, nl.add, tile(X), nl.add, SUM), {}),
    "maximum": ("NK306", "`reduce_op`", (DST, nl.exp, tile(X), nl.maximum, SUM), {}),
    "no reduction": ("NK609", "`reduce_op`", (DST, nl.exp, tile(X), None, SUM), {}),
}


@pytest.mark.parametrize("case", ACTIVATION_REFUSED)
def test_what_activation_reduce_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand and the instruction."""
    rule, named, args, kwargs = ACTIVATION_REFUSED[case]
    finding = refusal(nisa.activation_reduce, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message
    assert "activation_reduce" in finding.message


def test_a_number_as_bias_came_with_neuron_core_v3() -> None:
    """As in nisa.activation; prelu is refused as there."""
    args = (DST, nl.copy, tile(X), nl.add, SUM, 2.0)
    assert (issue(nisa.activation_reduce, *args, chip="trn2").views["reduce_res"] == 24).all()
    assert refusal(nisa.activation_reduce, *args, chip="trn1").rule == "NK606"
    with pytest.raises(nkitools.NotModelled):
        issue(nisa.activation_reduce, DST, nl.prelu, tile(X), nl.add, SUM)


# --- activate2 -------------------------------------------------------------------------------------------------------

STEPS: dict[str, Any] = {"multiply": np.multiply, "add": np.add, "subtract": np.subtract}
STAGES = (
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
)


@pytest.mark.parametrize("stages", STAGES)
@given(st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99))
def test_the_first_stage_has_six_forms(
    stages: tuple[str, str], vectors: bool, reverse0: bool, reverse1: bool, seed: int
) -> None:
    """``(data op0 imm0) op1 imm1`` with a float32 after each, either side first; bypass does nothing."""
    x, immediates = sample((64, 3, 4), seed=seed), (sample((64, 1), seed=seed + 1), sample((64, 1), seed=seed + 2))
    numbers = (np.float32(1.5), np.float32(-0.25))
    reverse = tuple(flag and name != "bypass" for flag, name in zip((reverse0, reverse1), stages, strict=True))
    expected = x
    for name, swapped, vector, number in zip(stages, reverse, immediates, numbers, strict=True):
        if name != "bypass":
            expected = rounded(STEPS[name], expected, vector[:, :, None] if vectors else number, swapped)
    issued = issue(
        nisa.activate2,
        dst=empty(x.shape),
        op=nl.copy,
        data=tile(x),
        imm0=tile(immediates[0]) if vectors else 1.5,
        imm1=tile(immediates[1]) if vectors else -0.25,
        op0=getattr(nl, stages[0]),
        op1=getattr(nl, stages[1]),
        reverse0=reverse[0],
        reverse1=reverse[1],
        chip="trn3",
    )
    np.testing.assert_array_equal(issued.dst, expected)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_second_stage_is_any_activation_function(name: str) -> None:
    """Right to four units in the last place, as in nisa.activation; other parameters have no part in it."""
    reference, low, high = ACTIVATIONS[name]
    x = np.linspace(low, high, 64 * 32).astype(np.float32).reshape(64, 32)
    x = np.clip(x, np.float32(low), np.float32(high))
    args = (empty(x.shape), getattr(nl, name), tile(x), 0.0, 0.0, nl.bypass, nl.bypass, 7.0)
    expected = reference(float64(x)).astype(np.float32)
    np.testing.assert_array_max_ulp(issue(nisa.activate2, *args, chip="trn3").dst, expected, 4)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_prelu_takes_its_slope(dtype: Any) -> None:
    """``x`` above 0, ``slope * x`` below; the slope is a number or a vector, and dst of any dtype."""
    x, slope = sample((32, 16)), sample((32, 1), seed=1, low=0, high=1)
    for given_as, values in ((0.25, np.float32(0.25)), (tile(slope), slope)):
        expected = np.where(x > 0, x, (float64(x) * float64(values)).astype(np.float32))
        args = (empty(x.shape, dtype), nl.prelu, tile(x), 0.0, 0.0, nl.bypass, nl.bypass, given_as)
        np.testing.assert_array_equal(issue(nisa.activate2, *args, chip="trn3").dst, held(expected, dtype))


def test_prelu_of_infinities() -> None:
    """Without a slope it is relu, for minus infinity too; NaN stays NaN."""
    x = np.array([[-np.inf, np.inf, np.nan]], np.float32)
    for slope, below in ((0.0, 0.0), (0.5, -np.inf)):
        args = (empty(x.shape), nl.prelu, tile(x), 0.0, 0.0, nl.bypass, nl.bypass, slope)
        np.testing.assert_array_equal(issue(nisa.activate2, *args, chip="trn3").dst, [[below, np.inf, np.nan]])


def _largest(rows: np.ndarray) -> np.ndarray:
    return np.array([max(reversed(list(row)), key=abs) for row in rows], np.float32)


def _smallest(rows: np.ndarray) -> np.ndarray:
    return np.array([min(reversed(list(row)), key=abs) for row in rows], np.float32)


REDUCTIONS: dict[str, tuple[Any, float]] = {
    "add": (lambda rows: rows.sum(axis=1), 0),
    "maximum": (lambda rows: rows.max(axis=1), -np.inf),
    "minimum": (lambda rows: rows.min(axis=1), np.inf),
    "abs_max": (_largest, 0),
    "abs_min": (_smallest, np.inf),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(st.integers(1, 21), st.integers(0, 99))
def test_the_third_stage_reduces_into_the_registers(name: str, elements: int, seed: int) -> None:
    """reset_reduce, reduce, reset; by magnitude, the sign is kept and the later one wins a tie."""
    x = np.random.default_rng(seed).integers(-5, 6, (32, 2 * elements)).astype(np.float32)
    reference, identity = REDUCTIONS[name]

    def body() -> list[np.ndarray]:
        data, dst, result, seen = placed(tile(x)), placed(empty((32, elements), nl.int8)), placed(SUM), []
        for first, command, res in (
            (0, COMMANDS.reset_reduce, None),
            (elements, COMMANDS.reduce, result),
            (0, COMMANDS.idle, result),
            (0, COMMANDS.reset, result),
        ):
            part = data[:, first : first + elements]
            keywords = {"reduce_op": getattr(nl, name), "reduce_cmd": command, "reduce_res": res}
            nisa.activate2(dst, nl.copy, part, 2.0, 0.5, nl.multiply, nl.add, **keywords)
            seen.append(None if res is None else np.array(res.array[:, 0]))
        return seen

    _, both, kept, reset = inside(body, chip="trn3")
    np.testing.assert_array_equal(both, reference(x * 2 + np.float32(0.5)))
    np.testing.assert_array_equal(kept, both)
    np.testing.assert_array_equal(reset, np.full(32, identity))


def test_reset_without_an_operator_leaves_zero() -> None:
    """As nisa.activation, which shares the registers."""
    args = (DST, nl.copy, tile(X), 0.0, 0.0, nl.bypass, nl.bypass)
    issued = issue(nisa.activate2, *args, reduce_res=SUM, reduce_cmd=COMMANDS.reset, chip="trn3")
    assert (issued.views["reduce_res"] == 0).all()


def test_the_registers_are_those_of_activation() -> None:
    """A sum begun by one instruction is finished by the other, in either order."""

    def body() -> list[np.ndarray]:
        x, dst, result, seen = placed(tile(X)), placed(DST), placed(SUM), []

        def first(command: Any) -> None:
            nisa.activation(dst, nl.copy, x, reduce_op=nl.add, reduce_res=result, reduce_cmd=command)
            seen.append(np.array(result.array[:, 0]))

        def second(command: Any) -> None:
            keywords = {"reduce_op": nl.add, "reduce_res": result, "reduce_cmd": command}
            nisa.activate2(dst, nl.copy, x, 2.0, 0.0, nl.multiply, nl.bypass, **keywords)
            seen.append(np.array(result.array[:, 0]))

        first(COMMANDS.reset_reduce)
        second(COMMANDS.reduce)
        second(COMMANDS.reset_reduce)
        first(COMMANDS.reduce)
        return seen

    for found, expected in zip(inside(body, chip="trn3"), (8, 24, 16, 24), strict=True):
        assert (found == expected).all()


def test_activate2_in_place_of_views_and_under_a_mask() -> None:
    """``dst`` may be ``data`` and hold the vectors; permuted data from PSUM; masked lanes stay."""
    x = sample((32, 4, 8))
    data = tile(x[:, 0])
    vector = data.seen(lambda t: t[:, 3:4])
    issued = issue(nisa.activate2, data, nl.relu, data, vector, vector, nl.multiply, nl.add, chip="trn3")
    column = x[:, 0, 3:4]
    np.testing.assert_array_equal(
        issued.dst, np.maximum(rounded(np.add, rounded(np.multiply, x[:, 0], column), column), 0)
    )
    turned = tile(x, "psum", view=lambda t: t.permute((0, 2, 1)))
    where = x.reshape(32, 32) > 0
    dst = tile(np.full((32, 32), 5, np.float32), view=lambda t: MaskedTensor.of(t, where))
    storage = issue(nisa.activate2, dst, nl.abs, turned, 1.0, 0.0, nl.subtract, nl.bypass, chip="trn3").storages["dst"]
    expected = np.abs(x.transpose(0, 2, 1).reshape(32, 32) - np.float32(1))
    np.testing.assert_array_equal(storage, np.where(where, expected, 5))


PLAIN = (0.0, 0.0, nl.bypass, nl.bypass)
ACTIVATE2_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), nl.exp, tile(X), *PLAIN), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), nl.exp, tile(X), *PLAIN), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), nl.exp, tile(TALL), *PLAIN), {}),
    "HBM": ("NK201", "`data`", (DST, nl.exp, tile(X, "hbm"), *PLAIN), {}),
    "result in HBM": (
        "NK201",
        "`reduce_res`",
        (DST, nl.exp, tile(X), *PLAIN),
        {"reduce_res": empty((32, 1), memory="hbm"), "reduce_cmd": COMMANDS.reset},
    ),
    "result's size": ("NK109", "`reduce_res`", (DST, nl.exp, tile(X), *PLAIN), {"reduce_res": empty((32, 2))}),
    "imm0's size": ("NK109", "`imm0`", (DST, nl.exp, tile(X), tile(X), 0.0, nl.multiply, nl.add), {}),
    "imm1's partitions": ("NK102", "`imm1`", (DST, nl.exp, tile(X), 1.0, tile(V[:16]), nl.multiply, nl.add), {}),
    "slope's partitions": ("NK111", "`relu_param`", (DST, nl.prelu, tile(X), *PLAIN, tile(V[:1])), {}),
    "two dtypes": (
        "NK301",
        "`imm0`",
        (DST, nl.exp, tile(X), tile(V), tile(V.astype(nl.bfloat16.dtype)), nl.multiply, nl.add),
        {},
    ),
    "packed": ("NK301", "`data`", (DST, nl.exp, tile(PACKED), *PLAIN), {}),
    "add then multiply": ("NK306", "`op0`", (DST, nl.exp, tile(X), 1.0, 1.0, nl.add, nl.multiply), {}),
    "bypass then add": ("NK306", "`op1`", (DST, nl.exp, tile(X), 1.0, 1.0, nl.bypass, nl.add), {}),
    "maximum": ("NK306", "`op0`", (DST, nl.exp, tile(X), 1.0, 1.0, nl.maximum, nl.bypass), {}),
    "no operator": ("NK609", "`op1`", (DST, nl.exp, tile(X), 1.0, 1.0, nl.multiply, None), {}),
    "no function": ("NK306", "`op`", (DST, nl.add, tile(X), *PLAIN), {}),
    "multiply reduces": ("NK306", "`reduce_op`", (DST, nl.exp, tile(X), *PLAIN), {"reduce_op": nl.multiply}),
    "reversed bypass": ("NK609", "`reverse0`", (DST, nl.exp, tile(X), *PLAIN), {"reverse0": True}),
    "second reversed bypass": (
        "NK609",
        "`reverse1`",
        (DST, nl.exp, tile(X), 1.0, 1.0, nl.add, nl.bypass),
        {"reverse1": True},
    ),
    "no reduction": ("NK609", "`reduce_op`", (DST, nl.exp, tile(X), *PLAIN), {"reduce_cmd": COMMANDS.reduce}),
    "load_reduce": (
        "NK609",
        "`reduce_cmd`",
        (DST, nl.exp, tile(X), *PLAIN),
        {"reduce_op": nl.add, "reduce_cmd": COMMANDS.load_reduce},
    ),
    "no immediate": ("NK609", "`imm0`", (DST, nl.exp, tile(X), None, 0.0, nl.bypass, nl.bypass), {}),
}


@pytest.mark.parametrize("case", ACTIVATE2_REFUSED)
def test_what_activate2_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = ACTIVATE2_REFUSED[case]
    finding = refusal(nisa.activate2, *args, chip="trn3", **kwargs)
    assert finding.rule == rule
    assert named in finding.message


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_activate2_came_with_neuron_core_v4(chip: str) -> None:
    """NK606 before, with the instruction to use instead; the result is there under rules="report"."""
    finding = refusal(nisa.activate2, DST, nl.square, tile(X), 3.0, 0.0, nl.multiply, nl.bypass, chip=chip)
    assert finding.rule == "NK606"
    assert "nisa.activation" in finding.remedy
    args = (DST, nl.square, tile(X), 3.0, 0.0, nl.multiply, nl.bypass)
    assert (issue(nisa.activate2, *args, chip=chip, rules="report").dst == 9).all()
