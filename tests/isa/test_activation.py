"""nisa.activation against float64 references: functions, scale and bias, the reduce registers, refusals."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.engines.operators import ACTIVATIONS as KNOWN
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import ACTIVATIONS, FLOATS, INTEGERS, float64, held, sample

pytestmark = pytest.mark.usefixtures("each_version")

COMMANDS = nisa.reduce_cmd


# --- functions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_function_is_right_to_four_units_in_the_last_place(name: str) -> None:
    """Over its smooth range, in float32, in place and into another tile."""
    reference, low, high = ACTIVATIONS[name]
    x = np.random.default_rng(0).uniform(low, high, (128, 64)).astype(np.float32)
    x = np.clip(x, np.float32(low), np.float32(high))
    x[:, 0] = np.linspace(low, high, 128)
    expected = reference(float64(x)).astype(np.float32)
    data = tile(x)
    np.testing.assert_array_max_ulp(issue(nisa.activation, empty(x.shape), getattr(nl, name), data).dst, expected, 4)
    np.testing.assert_array_max_ulp(issue(nisa.activation, data, getattr(nl, name), data).dst, expected, 4)


def test_every_documented_function_has_a_reference_here() -> None:
    """The table of activation functions and these tests name the same functions (prelu is nisa.activate2's)."""
    assert set(KNOWN) == set(ACTIVATIONS)


LIMITS = {
    "sigmoid": (0, 1),
    "relu": (0, math.inf),
    "gelu": (0, math.inf),
    "gelu_dx": (0, 1),
    "gelu_apprx_tanh": (0, math.inf),
    "gelu_apprx_sigmoid": (0, math.inf),
    "gelu_apprx_sigmoid_dx": (0, 1),
    "silu": (0, math.inf),
    "silu_dx": (0, 1),
    "tanh": (-1, 1),
    "softplus": (0, math.inf),
    "mish": (0, math.inf),
    "erf": (-1, 1),
    "erf_dx": (0, 0),
    "exp": (0, math.inf),
    "sign": (-1, 1),
    "abs": (math.inf, math.inf),
    "square": (math.inf, math.inf),
    "copy": (-math.inf, math.inf),
}


@pytest.mark.parametrize("name", LIMITS)
def test_infinities_are_valid_where_the_table_says_so(name: str) -> None:
    """A valid input range of [-inf, inf] means the limits, not NaN; NaN stays NaN."""
    x = np.array([[-math.inf, math.inf, -1e30, 1e30, math.nan]], np.float32)
    result = issue(nisa.activation, empty(x.shape), getattr(nl, name), tile(x)).dst
    np.testing.assert_array_equal(result[0, :2], LIMITS[name])
    assert not np.isnan(result[0, 2:4]).any()
    assert np.isnan(result[0, 4])


def test_the_sine_extrapolates_a_cubic() -> None:
    """No range reduction: the documented ``sin(9.0)`` is about 27.65, and the function stays odd."""
    x = np.array([[9.0, -9.0, math.pi, 3.5]], np.float32)
    result = issue(nisa.activation, empty(x.shape), nl.sin, tile(x)).dst
    np.testing.assert_allclose(result[0, :2], [27.65, -27.65], atol=0.005)
    np.testing.assert_allclose(result[0, 2:], [0, math.sin(3.5)], atol=1e-3)


def test_valid_ranges_are_those_of_the_table() -> None:
    """The magnitudes that the engine's approximations hold for, and whether negative inputs are among them."""
    bounded = {name: (each.valid, each.signed) for name, each in KNOWN.items() if each.valid != (0, math.inf)}
    assert bounded == {
        "log": ((2.0**-64, 2.0**64), False),
        "sin": ((0.0, math.pi), True),
        "arctan": ((0.0, math.pi / 2), True),
        "sqrt": ((2.0**-116, 2.0**118), False),
        "rsqrt": ((2.0**-87, 2.0**97), False),
        "reciprocal": ((2.0**-42, 2.0**42), True),
    }


# --- dtypes, scale and bias ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int8, nl.uint8], ids=str)
def test_any_dtype_is_widened_and_cast_once(dtype: Any, result: Any) -> None:
    """``relu(x * 2 + 1)`` in float32, then one cast."""
    x = sample((32, 20), dtype, 1, -60, 60)
    bias = np.ones((32, 1), np.float32)
    issued = issue(nisa.activation, empty(x.shape, result), nl.relu, tile(x, dtype=dtype), tile(bias), 2.0)
    np.testing.assert_array_equal(issued.dst, held(np.maximum(float64(x) * 2 + 1, 0), result))


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2], ids=str)
def test_a_copy_into_the_same_dtype_keeps_each_value(dtype: Any) -> None:
    """Of one byte and of two every number, with both zeros and infinities; through a view, under a mask, in place."""
    width = min(dtype.itemsize, 2)
    patterns = np.arange(1 << 8 * width, dtype=f"u{width}").reshape(64, -1)
    x = np.ascontiguousarray(patterns.astype(np.uint32) << 16 if dtype is nl.float32 else patterns)
    x = x.view(dtype.dtype).copy()
    with np.errstate(invalid="ignore"):
        x[x != x] = 1
    raw = x.view(f"u{dtype.itemsize}")
    data = tile(x, dtype=dtype)
    for dst in (empty(x.shape, dtype), data, empty((64, x.shape[1], 2), dtype, view=lambda t: t[:, :, 1])):
        copied = np.ascontiguousarray(issue(nisa.activation, dst, nl.copy, data).dst)
        np.testing.assert_array_equal(copied.view(raw.dtype), raw)
    where = np.random.default_rng(0).random(x.shape) < 0.5
    dst = tile(np.zeros_like(x), dtype=dtype, view=lambda t: MaskedTensor.of(t, where))
    storage = issue(nisa.activation, dst, nl.copy, data).storages["dst"]
    np.testing.assert_array_equal(storage, np.where(where, x, np.zeros_like(x)))


@given(st.sampled_from(["number", "vector"]), st.sampled_from([None, "number", "vector"]), st.integers(0, 99))
def test_scale_comes_before_bias(scale: str, bias: str | None, seed: int) -> None:
    """``op(data * scale + bias)`` with numbers or (partitions, 1) vectors, each rounded to float32."""
    x, s, b = sample((64, 3, 5), seed=seed), sample((64, 1), seed=seed + 1), sample((64, 1), seed=seed + 2)
    scale_value = s[:, :, None] if scale == "vector" else np.float32(0.7)
    bias_value = {None: np.float32(0), "number": np.float32(-0.3), "vector": b[:, :, None]}[bias]
    expected = (float64(x) * float64(scale_value)).astype(np.float32)
    expected = (float64(expected) + float64(bias_value)).astype(np.float32)
    issued = issue(
        nisa.activation,
        dst=empty(x.shape),
        op=nl.copy,
        data=tile(x),
        scale=tile(s) if scale == "vector" else 0.7,
        bias={None: None, "number": -0.3, "vector": tile(b)}[bias],
    )
    np.testing.assert_array_equal(issued.dst, expected)


@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16, nl.int32, nl.uint8, nl.float8_e4m3], ids=str)
def test_the_bias_may_be_of_any_dtype(dtype: Any) -> None:
    """Any but tfloat32."""
    x, bias = sample((16, 4), seed=1), sample((16, 1), dtype, 2)
    result = issue(nisa.activation, empty(x.shape), nl.copy, tile(x), tile(bias)).dst
    np.testing.assert_array_equal(result, x + bias.astype(np.float32))


def test_in_place_with_scale_and_bias_from_the_same_tile() -> None:
    """They are read before they are overwritten."""
    x = sample((32, 6), seed=1)
    data = tile(x)
    bias, scale = (data.seen(lambda t, c=c: t[:, c : c + 1]) for c in (0, 5))
    result = issue(nisa.activation, data, nl.copy, data, bias, scale).dst
    np.testing.assert_array_equal(result, x * x[:, 5:] + x[:, :1])


def test_views_psum_and_masks() -> None:
    """Permuted data from PSUM into PSUM, and a destination under a mask."""
    x = sample((32, 4, 8), seed=1)
    turned = tile(x, "psum", view=lambda t: t.permute((0, 2, 1)))
    issued = issue(nisa.activation, empty((32, 32), memory="psum"), nl.square, turned)
    np.testing.assert_array_equal(issued.dst, (x * x).transpose(0, 2, 1).reshape(32, 32))
    where = x[:, 0] > 0
    dst = tile(np.full((32, 8), 5, np.float32), view=lambda t: MaskedTensor.of(t, where))
    storage = issue(nisa.activation, dst, nl.copy, tile(x[:, 0]), None, 2.0).storages["dst"]
    np.testing.assert_array_equal(storage, np.where(where, x[:, 0] * 2, 5))


# --- the reduce registers --------------------------------------------------------------------------------------------


def test_reduce_res_receives_the_sum_of_the_results() -> None:
    """reset_reduce: the register is this call's sum; float32 inside, whatever the dtypes."""
    x = np.random.default_rng(0).integers(-4, 5, (128, 6, 5)).astype(np.float32)
    for dtype in (nl.float32, nl.bfloat16):
        issued = issue(
            nisa.activation,
            empty(x.shape, nl.bfloat16),
            nl.square,
            tile(x),
            reduce_op=nl.add,
            reduce_res=empty((128, 1), dtype),
            reduce_cmd=COMMANDS.reset_reduce,
        )
        np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], held((x**2).sum(axis=(1, 2)), dtype))


def test_the_sum_is_taken_before_the_cast() -> None:
    """2048 bfloat16 ones plus a little each: the register sums the float32 results, not what dst holds of them."""
    ones = np.ones((2, 2048), nl.bfloat16.dtype)
    issued = issue(
        nisa.activation,
        empty(ones.shape, nl.bfloat16),
        nl.copy,
        tile(ones),
        0.001,
        reduce_op=nl.add,
        reduce_res=empty((2, 1)),
        reduce_cmd=COMMANDS.reset_reduce,
    )
    assert (issued.dst.astype(np.float32) == 1).all()
    np.testing.assert_allclose(issued.views["reduce_res"], 2048 * 1.001, rtol=1e-6)


def test_registers_persist_across_calls() -> None:
    """reset_reduce, reduce, idle, reduce with the result read at the end; reset alone leaves zero."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)

    def body() -> list[np.ndarray]:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((4, 1)))
        seen = []

        def call(**kwargs: Any) -> None:
            nisa.activation(dst, nl.copy, data, **kwargs)
            seen.append(result.array.copy() if "reduce_res" in kwargs else None)

        call(reduce_op=nl.add, reduce_cmd=COMMANDS.reset_reduce)
        call(reduce_op=nl.add, reduce_cmd=COMMANDS.reduce, scale=2.0)
        call()
        call(reduce_op=nl.add, reduce_cmd=COMMANDS.reduce, reduce_res=result)
        call(reduce_res=result)
        call(reduce_cmd=COMMANDS.reset, reduce_res=result)
        return seen

    seen = inside(body)
    sums = x.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(seen[3], 4 * sums)
    np.testing.assert_array_equal(seen[4], 4 * sums)
    np.testing.assert_array_equal(seen[5], 0 * sums)


def test_each_partition_has_its_own_register() -> None:
    """A call on partitions 32 to 63 leaves the others' registers alone."""
    x = np.ones((64, 3), np.float32)

    def body() -> np.ndarray:
        data, dst, result = placed(tile(x)), placed(empty(x.shape)), placed(empty((64, 1)))
        nisa.activation(dst, nl.copy, data, reduce_op=nl.add, reduce_cmd=COMMANDS.reset_reduce)
        nisa.activation(dst[32:64], nl.copy, data[32:64], reduce_op=nl.add, reduce_cmd=COMMANDS.reduce)
        nisa.activation(dst, nl.copy, data, reduce_res=result)
        return np.array(result.array[:, 0])

    np.testing.assert_array_equal(inside(body), [3] * 32 + [6] * 32)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_sum_without_a_command_is_of_its_call_alone(dtype: Any) -> None:
    """In every turn of a loop, whatever the registers hold; told as a hint. A trn2 was right with it."""
    x = np.random.default_rng(0).integers(-9, 9, (3, 64, 8)).astype(dtype)

    def kernel(given: Any) -> Any:
        out = nl.ndarray((3, 64, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        for turn in range(3):
            squares, total = nl.ndarray((64, 8), dtype=nl.float32), nl.ndarray((64, 1), dtype=nl.float32)
            nisa.activation(squares, nl.square, nl.load(given[turn]), reduce_op=nl.add, reduce_res=total)
            nl.store(out[turn], total)
        return out

    done = nkitools.simulate(kernel, x)
    np.testing.assert_array_equal(done.outputs, (x.astype(np.float32) ** 2).sum(axis=2, keepdims=True))
    assert {(each.rule, each.severity) for each in done.findings} == {("NK507", "hint")}
    assert "reset_reduce" in done.findings[0].remedy


@pytest.mark.parametrize("keywords", [{"reduce_op": nl.add, "reduce_cmd": COMMANDS.reduce}, {}], ids=["reduce", "idle"])
def test_registers_do_not_outlive_a_run(keywords: dict[str, Any]) -> None:
    """What no instruction of this kernel has reset is undefined: NaN, and a warning."""
    x = np.ones((4, 3), np.float32)
    issue(nisa.activation, empty(x.shape), nl.copy, tile(x), reduce_op=nl.add, reduce_cmd=COMMANDS.reset_reduce)
    issued = issue(nisa.activation, empty(x.shape), nl.copy, tile(x), reduce_res=empty((4, 1)), **keywords)
    assert np.isnan(issued.views["reduce_res"]).all()
    assert [(each.rule, each.severity) for each in issued.findings] == [("NK507", "warning")]


# --- refusals --------------------------------------------------------------------------------------------------------

X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
TALL = np.ones((256, 2), np.float32)
DST = empty((32, 8))
SUM = {"reduce_op": nl.add, "reduce_cmd": COMMANDS.reset_reduce}
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), nl.exp, tile(X)), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), nl.exp, tile(X)), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), nl.exp, tile(TALL)), {}),
    "start": ("NK108", "`dst`", (empty((64, 8), view=lambda t: t[31:63, :]), nl.exp, tile(X)), {}),
    "HBM": ("NK201", "`data`", (DST, nl.exp, tile(X, "hbm")), {}),
    "result in HBM": (
        "NK201",
        "`reduce_res`",
        (DST, nl.exp, tile(X)),
        {**SUM, "reduce_res": empty((32, 1), memory="hbm")},
    ),
    "scale's partitions": ("NK111", "`scale`", (DST, nl.exp, tile(X)), {"scale": tile(V[:1])}),
    "bias's partitions": ("NK102", "`bias`", (DST, nl.exp, tile(X), tile(V[:16])), {}),
    "scale's size": ("NK109", "`scale`", (DST, nl.exp, tile(X)), {"scale": tile(X)}),
    "result's size": ("NK109", "`reduce_res`", (DST, nl.exp, tile(X)), {**SUM, "reduce_res": empty((32, 2))}),
    "result's partitions": ("NK102", "`reduce_res`", (DST, nl.exp, tile(X)), {**SUM, "reduce_res": empty((16, 1))}),
    "scale's dtype": ("NK301", "`scale`", (DST, nl.exp, tile(X)), {"scale": tile(V.astype(nl.bfloat16.dtype))}),
    "bias's dtype": ("NK301", "`bias`", (DST, nl.exp, tile(X), tile(V, dtype=nl.tfloat32)), {}),
    "packed": ("NK301", "`data`", (DST, nl.exp, tile(np.zeros((32, 8), nl.float8_e5m2_x4.dtype))), {}),
    "operator": ("NK306", "`op`", (DST, nl.add, tile(X)), {}),
    "reduce operator": ("NK306", "`reduce_op`", (DST, nl.exp, tile(X)), {**SUM, "reduce_op": nl.maximum}),
    "no reduce operator": ("NK609", "`reduce_op`", (DST, nl.exp, tile(X)), {"reduce_cmd": COMMANDS.reduce}),
    "load_reduce": ("NK609", "`reduce_cmd`", (DST, nl.exp, tile(X)), {"reduce_cmd": COMMANDS.load_reduce}),
    "command of text": ("NK609", "`reduce_cmd`", (DST, nl.exp, tile(X)), {"reduce_cmd": "reset"}),
    "no scale": ("NK609", "`scale`", (DST, nl.exp, tile(X)), {"scale": None}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.activation, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_prelu_is_not_modelled_here() -> None:
    """It needs relu_param, which nisa.activation does not have; said at every rule level."""
    for rules in ("error", "report", "off"):
        with pytest.raises(nkitools.NotModelled, match="relu_param"):
            issue(nisa.activation, DST, nl.prelu, tile(X), rules=rules)


# --- generations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", ["trn2", "trn3"])
def test_a_number_as_bias_came_with_neuron_core_v3(chip: str) -> None:
    """On NeuronCore-v2 the bias is a vector; None and 0 are no bias anywhere."""
    np.testing.assert_array_equal(issue(nisa.activation, DST, nl.copy, tile(X), 2.0, chip=chip).dst, X + 2)
    finding = refusal(nisa.activation, DST, nl.copy, tile(X), 2.0, chip="trn1")
    assert finding.rule == "NK606"
    assert "`bias`" in finding.message
    for none in (None, 0, 0.0):
        assert issue(nisa.activation, DST, nl.copy, tile(X), none, chip="trn1").rules == []


def test_a_number_as_bias_is_looked_at_in_each_call() -> None:
    """A number is data: that 0.0 was fine in one call says nothing about the next."""

    def body() -> None:
        x, dst = placed(tile(X)), placed(DST)
        nisa.activation(dst, nl.copy, x, 0.0)
        with pytest.raises(nkitools.KernelError) as caught:
            nisa.activation(dst, nl.copy, x, 1.0)
        assert caught.value.finding.rule == "NK606"

    inside(body, chip="trn1")


def test_reciprocal_takes_no_bias_on_neuron_core_v2() -> None:
    """ "nisa.activation(op=nl.reciprocal) doesn't support setting bias on NeuronCore-v2"."""
    finding = refusal(nisa.activation, DST, nl.reciprocal, tile(X), tile(V), chip="trn1")
    assert finding.rule == "NK606"
    assert "`bias`" in finding.message
    assert (issue(nisa.activation, DST, nl.reciprocal, tile(X), tile(V), chip="trn2").dst == 0.5).all()


def test_256_partitions_reduce_too_and_are_reported_once() -> None:
    """Under rules="report" the registers suffice for the partitions that there are not."""
    issued = issue(
        nisa.activation, empty(TALL.shape), nl.copy, tile(TALL), reduce_res=empty((256, 1)), rules="report", **SUM
    )
    assert (issued.views["reduce_res"] == 2).all()
    assert issued.rules == ["NK101"]
