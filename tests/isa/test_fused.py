"""nisa.scalar_tensor_tensor and nisa.tensor_scalar_reduce against float64 references."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample

pytestmark = pytest.mark.usefixtures("each_version")

COMMANDS = nisa.reduce_cmd
BINARY: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
}
UNARY: dict[str, Any] = {"abs": np.abs, "square": np.square, "relu": lambda x: np.maximum(x, 0)}


def rounded(function: Any, left: Any, right: Any, reverse: bool = False) -> np.ndarray:
    """One step of the engine: exact in float64, rounded to float32."""
    sides = (float64(np.asarray(left)), float64(np.asarray(right)))
    with np.errstate(all="ignore"):
        return np.asarray(function(*(sides[::-1] if reverse else sides))).astype(np.float32)


# --- scalar_tensor_tensor --------------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(sorted(BINARY)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_two_operators_are_one_after_the_other(
    op0: str, op1: str, reverse0: bool, reverse1: bool, vector: bool, seed: int
) -> None:
    """``(data <op0> operand0) <op1> operand1`` with a float32 in between, each side reversed on its own."""
    x, y, v = sample((48, 10), seed=seed), sample((48, 10), seed=seed + 1), sample((48, 1), seed=seed + 2)
    operand0 = v if vector else np.float32(1.5)
    expected = rounded(BINARY[op1], rounded(BINARY[op0], x, operand0, reverse0), y, reverse1)
    issued = issue(
        nisa.scalar_tensor_tensor,
        dst=empty(x.shape),
        data=tile(x),
        op0=getattr(nl, op0),
        operand0=tile(v) if vector else 1.5,
        op1=getattr(nl, op1),
        operand1=tile(y),
        reverse0=reverse0,
        reverse1=reverse1,
    )
    np.testing.assert_array_equal(issued.dst, expected)


@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int8, nl.uint16], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_any_dtype_is_widened_and_cast_once(dtype: Any, result: Any) -> None:
    """All tiles, the vector too, of any dtype; ``x * 2 + y`` in float32, one cast."""
    x, y = sample((32, 20), dtype, 1, -60, 60), sample((32, 20), dtype, 2, -60, 60)
    factor = held(np.full((32, 1), 2), dtype)
    issued = issue(
        nisa.scalar_tensor_tensor,
        empty(x.shape, result),
        tile(x, dtype=dtype),
        nl.multiply,
        tile(factor, dtype=dtype),
        nl.add,
        tile(y, dtype=dtype),
    )
    np.testing.assert_array_equal(issued.dst, held(float64(x) * 2 + float64(y), result))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("operand", [None, 0, 0.0])
def test_the_first_operator_may_be_unary(name: str, operand: Any) -> None:
    """Its operand is None or 0, as nisa.tensor_scalar's is."""
    x, y = sample((32, 6)), sample((32, 6), seed=1)
    chip = "trn3" if name in ("square", "relu") else "trn2"
    operands = (tile(x), getattr(nl, name), operand, nl.subtract, tile(y))
    issued = issue(nisa.scalar_tensor_tensor, empty(x.shape), *operands, chip=chip)
    np.testing.assert_array_equal(issued.dst, rounded(np.subtract, rounded(lambda a, b: UNARY[name](a), x, 0), y))


def test_the_destination_may_be_any_operand() -> None:
    """``acc = x * scale + acc``, ``x = x * scale + acc``, and a vector out of the destination."""
    x, y = sample((64, 8)), sample((64, 8), seed=1)
    expected = rounded(np.add, rounded(np.multiply, x, 0.5), y)
    sources = [tile(x), tile(y)]
    for dst in sources:
        issued = issue(nisa.scalar_tensor_tensor, dst, sources[0], nl.multiply, 0.5, nl.add, sources[1])
        np.testing.assert_array_equal(issued.dst, expected)
    data = tile(x)
    vector = data.seen(lambda t: t[:, 3:4])
    issued = issue(nisa.scalar_tensor_tensor, data, data, nl.multiply, vector, nl.add, data)
    np.testing.assert_array_equal(issued.dst, rounded(np.add, rounded(np.multiply, x, x[:, 3:4]), x))


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_the_destination_may_share_a_part_of_an_operand(dtype: Any, shift: int) -> None:
    """Every operand is read before the destination is written, whichever way they are shifted (which is NK510)."""
    x = held(sample((16, 12)), dtype)
    read, written = slice(1, 11), slice(1 + shift, 11 + shift)
    for shared in ("data", "operand1"):
        whole, other = tile(x, dtype=dtype), tile(held(sample((16, 10), seed=1), dtype), dtype=dtype)
        part = whole.seen(lambda t: t[:, read])
        tensors: dict[str, Any] = {
            "dst": whole.seen(lambda t: t[:, written]),
            "data": other,
            "operand1": other,
            shared: part,
        }
        tensors |= {"op0": nl.multiply, "operand0": 3.0, "op1": nl.subtract}
        issued = issue(nisa.scalar_tensor_tensor, **tensors, rules="report")
        assert [each.rule for each in issued.findings] == (["NK510"] if shift else [])
        first, second = (x[:, read] if name == shared else other.values for name in ("data", "operand1"))
        expected = rounded(np.subtract, rounded(np.multiply, first, 3.0), second)
        np.testing.assert_array_equal(issued.dst, held(expected, dtype))


def test_views_psum_masks_and_zero_strides() -> None:
    """Operands of other dimensions, one in PSUM; masked lanes stay; a zero-stride destination keeps the last."""
    x, y = sample((32, 4, 8)), sample((32, 32), seed=1)
    turned = tile(x, "psum", view=lambda t: t.permute((0, 2, 1)))
    expected = rounded(np.subtract, x.transpose(0, 2, 1).reshape(32, 32) + np.float32(1), y)
    args = (turned, nl.add, 1.0, nl.subtract, tile(y))
    np.testing.assert_array_equal(issue(nisa.scalar_tensor_tensor, empty((32, 32), memory="psum"), *args).dst, expected)
    where = y > 0
    dst = tile(np.full((32, 32), 7, np.float32), view=lambda t: MaskedTensor.of(t, where))
    storage = issue(nisa.scalar_tensor_tensor, dst, *args).storages["dst"]
    np.testing.assert_array_equal(storage, np.where(where, expected, 7))
    narrow = empty((32, 1), view=lambda t: t.ap([[1, 32], [0, 32]]))
    np.testing.assert_array_equal(issue(nisa.scalar_tensor_tensor, narrow, *args).storages["dst"], expected[:, -1:])


def test_costs_of_scalar_tensor_tensor() -> None:
    """N cycles for bfloat16 subtract then multiply with an even N, else 2N (SDK 2.26)."""
    half = np.ones((128, 512), nl.bfloat16.dtype)

    def cycles(values: np.ndarray, op0: Any, op1: Any) -> float:
        issued = issue(nisa.scalar_tensor_tensor, empty(values.shape), tile(values), op0, 1.0, op1, tile(values))
        assert issued.instruction.engine == "vector"
        return float(issued.instruction.cycles)

    assert cycles(half, nl.subtract, nl.multiply) == 512
    assert cycles(half[:, :511], nl.subtract, nl.multiply) == 1022
    assert cycles(half, nl.add, nl.multiply) == 1024
    assert cycles(half.astype(np.float32), nl.subtract, nl.multiply) == 1024


X = np.ones((32, 8), np.float32)
V = np.ones((32, 1), np.float32)
N = np.ones((32, 8), np.int32)
TALL = np.ones((256, 2), np.float32)
PACKED = np.zeros((32, 8), nl.float8_e5m2_x4.dtype)
DST = empty((32, 8))
Cases = dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]]
TWO_STEPS_REFUSED: Cases = {
    "partitions": ("NK102", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, tile(X[:16])), {}),
    "one partition": ("NK111", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, tile(X[:1])), {}),
    "vector's partitions": ("NK102", "`operand0`", (DST, tile(X), nl.add, tile(V[:16]), nl.add, tile(X)), {}),
    "destination's partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X), nl.add, 1.0, nl.add, tile(X)), {}),
    "elements": ("NK109", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, tile(X[:, :4])), {}),
    "destination's elements": ("NK109", "`dst`", (empty((32, 4)), tile(X), nl.add, 1.0, nl.add, tile(X)), {}),
    "no vector": ("NK109", "`operand0`", (DST, tile(X), nl.add, tile(X), nl.add, tile(X)), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), tile(TALL), nl.add, 1.0, nl.add, tile(TALL)), {}),
    "both in PSUM": ("NK201", "both in PSUM", (DST, tile(X, "psum"), nl.add, 1.0, nl.add, tile(X, "psum")), {}),
    "HBM": ("NK201", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, tile(X, "hbm")), {}),
    "packed": ("NK301", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, tile(PACKED)), {}),
    "packed vector": ("NK301", "`operand0`", (DST, tile(X), nl.add, tile(PACKED[:, :1]), nl.add, tile(X)), {}),
    "bits first": ("NK306", "`op0`", (DST, tile(N), nl.bitwise_or, 1, nl.add, tile(N)), {}),
    "bits second": ("NK306", "`op1`", (DST, tile(N), nl.add, 1, nl.bitwise_or, tile(N)), {}),
    "unary second": ("NK306", "`op1`", (DST, tile(X), nl.add, 1.0, nl.abs, tile(X)), {}),
    "activation": ("NK306", "`op0`", (DST, tile(X), nl.exp, None, nl.add, tile(X)), {}),
    "no operand": ("NK609", "`operand0`", (DST, tile(X), nl.add, None, nl.add, tile(X)), {}),
    "operand of a unary": ("NK609", "`operand0`", (DST, tile(X), nl.abs, 1.0, nl.add, tile(X)), {}),
    "vector of a unary": ("NK609", "`operand0`", (DST, tile(X), nl.abs, tile(V), nl.add, tile(X)), {}),
    "number for a tile": ("NK609", "`operand1`", (DST, tile(X), nl.add, 1.0, nl.add, 1.0), {}),
}


@pytest.mark.parametrize("case", TWO_STEPS_REFUSED)
def test_what_scalar_tensor_tensor_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = TWO_STEPS_REFUSED[case]
    finding = refusal(nisa.scalar_tensor_tensor, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_the_undocumented_dtype_argument_rounds_on_the_way() -> None:
    """A public production kernel passes it: the result takes that dtype before it takes the destination's."""
    x = np.linspace(-3, 3, 32 * 8, dtype=np.float32).reshape(32, 8)
    steps = (nl.multiply, 0.7, nl.add, tile(x))
    exact = (x * np.float32(0.7) + x).astype(np.float32)
    for dtype, expected in ((nl.bfloat16, exact.astype(ml_dtypes.bfloat16)), (nl.float32, exact)):
        dst = issue(nisa.scalar_tensor_tensor, empty((32, 8)), tile(x), *steps, dtype=dtype).dst
        np.testing.assert_array_equal(dst, expected.astype(np.float32))
    refused = issue(
        nisa.scalar_tensor_tensor, DST, tile(X), nl.add, 1.0, nl.multiply, tile(X), dtype="float7", rules="report"
    )
    assert [finding.rule for finding in refused.findings] == ["NK609"]


@pytest.mark.parametrize("name", ["abs_max", "abs_min"])
def test_magnitude_operators_came_with_neuron_core_v4(name: str) -> None:
    """NK606 on the generations before."""
    x, y = sample((32, 8)), sample((32, 8), seed=1)
    args = (DST, tile(x), nl.add, 0.0, getattr(nl, name), tile(y))
    wins = np.abs(x) > np.abs(y) if name == "abs_max" else np.abs(x) < np.abs(y)
    np.testing.assert_array_equal(issue(nisa.scalar_tensor_tensor, *args, chip="trn3").dst, np.where(wins, x, y))
    for chip in ("trn1", "trn2"):
        assert refusal(nisa.scalar_tensor_tensor, *args, chip=chip).rule == "NK606"


# --- tensor_scalar_reduce --------------------------------------------------------------------------------------------

REDUCTIONS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(sorted(REDUCTIONS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(64, 12), (128, 3, 4), (1, 1), (32, 700)]),
    st.integers(0, 99),
)
def test_the_result_is_written_and_reduced(
    op0: str, reduce_op: str, vector: bool, negate: bool, shape: tuple[int, ...], seed: int
) -> None:
    """``dst = data <op0> operand0``; ``reduce_res`` is its reduction over all free dimensions, of either sign."""
    x, v = sample(shape, seed=seed, low=0.5, high=1.5), sample((shape[0], 1), seed=seed + 1, low=0.5, high=1.5)
    operand = v.reshape(shape[0], *[1] * (len(shape) - 1)) if vector else np.float32(0.75)
    expected = rounded(BINARY[op0], x, operand)
    reduced = REDUCTIONS[reduce_op].reduce(float64(expected).reshape(shape[0], -1), axis=1)
    issued = issue(
        nisa.tensor_scalar_reduce,
        dst=empty(shape),
        data=tile(x),
        op0=getattr(nl, op0),
        operand0=tile(v) if vector else 0.75,
        reduce_op=getattr(nl, reduce_op),
        reduce_res=empty((shape[0], 1)),
        reduce_res_negate=negate,
    )
    np.testing.assert_array_equal(issued.dst, expected)
    with np.errstate(over="ignore"):
        wanted = (-reduced if negate else reduced).astype(np.float32)
    # Two orders of 700 float32 sums or products differ by their roundings: at most half a unit each.
    np.testing.assert_allclose(issued.views["reduce_res"][:, 0], wanted, rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_the_reduction_is_taken_before_the_cast(dtype: Any) -> None:
    """2000 halves: ``dst`` rounds each to its dtype, the register holds their float32 sum."""
    x = np.ones((4, 2000), np.float32)
    issued = issue(nisa.tensor_scalar_reduce, empty(x.shape, dtype), tile(x), nl.multiply, 0.5, nl.add, empty((4, 1)))
    np.testing.assert_array_equal(issued.dst, held(np.full(x.shape, 0.5), dtype))
    np.testing.assert_array_equal(issued.views["reduce_res"], np.full((4, 1), 1000))


def test_registers_go_on_from_tile_to_tile() -> None:
    """reset_reduce, then reduce without a result tile, then reduce with one; load_reduce starts from a value."""
    x = sample((64, 3, 16))
    start = sample((64, 1), seed=1)

    def body() -> list[np.ndarray]:
        data, dst, first = placed(tile(x)), placed(empty((64, 16))), placed(tile(start))
        result, seen = placed(empty((64, 1))), []

        def call(k: int, **kwargs: Any) -> None:
            nisa.tensor_scalar_reduce(dst, data[:, k], nl.multiply, 1.0, nl.maximum, **kwargs)
            if "reduce_res" in kwargs:
                seen.append(np.array(result.array))

        call(0)
        call(1, reduce_cmd=COMMANDS.reduce)
        call(2, reduce_cmd=COMMANDS.reduce, reduce_res=result, reduce_res_negate=True)
        call(0, reduce_cmd=COMMANDS.reduce, reduce_res=result)  # the negation has not touched the registers
        call(1, reduce_cmd=COMMANDS.load_reduce, reduce_init=first, reduce_res=result)
        call(2, reduce_cmd=COMMANDS.load_reduce, reduce_init=-9.0, reduce_res=result)
        call(1, reduce_res=result)
        return seen

    highest = x.max(axis=(1, 2))[:, None]
    each = x.max(axis=2)
    wanted = [-highest, highest, np.maximum(each[:, 1:2], start), each[:, 2:], each[:, 1:2]]
    for found, expected in zip(inside(body), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_destination_may_be_the_input_and_the_initial_value() -> None:
    """What is loaded into the registers is read before it is overwritten; a narrow destination takes the last."""
    x = sample((32, 8))
    data = tile(x)
    issued = issue(
        nisa.tensor_scalar_reduce,
        data,
        data,
        nl.multiply,
        2.0,
        nl.maximum,
        reduce_res=empty((32, 1)),
        reduce_cmd=COMMANDS.load_reduce,
        reduce_init=data.seen(lambda t: t[:, 7:]),
    )
    np.testing.assert_array_equal(issued.dst, 2 * x)
    np.testing.assert_array_equal(issued.views["reduce_res"], np.maximum((2 * x).max(axis=1), x[:, 7])[:, None])
    narrow = empty((32, 1), view=lambda t: t.ap([[1, 32], [0, 8]]))
    issued = issue(nisa.tensor_scalar_reduce, narrow, tile(x), nl.multiply, 2.0, nl.maximum, empty((32, 1)))
    np.testing.assert_array_equal(issued.views["reduce_res"], (2 * x).max(axis=1, keepdims=True))
    np.testing.assert_array_equal(issued.storages["dst"], 2 * x[:, 7:])


def test_costs_of_tensor_scalar_reduce() -> None:
    """max(64, N) cycles, and 64 to read the registers out (SDK 2.26)."""
    for elements, result, cycles in ((16, None, 64), (512, None, 512), (512, empty((32, 1)), 576)):
        x = np.ones((32, elements), np.float32)
        issued = issue(nisa.tensor_scalar_reduce, empty(x.shape), tile(x), nl.add, 1.0, nl.add, result)
        assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", cycles)


LOAD = {"reduce_cmd": COMMANDS.load_reduce}
REDUCE_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X), nl.add, 1.0, nl.add), {}),
    "elements": ("NK109", "`dst`", (empty((32, 4)), tile(X), nl.add, 1.0, nl.add), {}),
    "result's partitions": ("NK102", "`reduce_res`", (DST, tile(X), nl.add, 1.0, nl.add, empty((16, 1))), {}),
    "result's size": ("NK109", "`reduce_res`", (DST, tile(X), nl.add, 1.0, nl.add, empty((32, 2))), {}),
    "result in HBM": ("NK201", "`reduce_res`", (DST, tile(X), nl.add, 1.0, nl.add, empty((32, 1), memory="hbm")), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), tile(TALL), nl.add, 1.0, nl.add), {}),
    "vector's partitions": ("NK111", "`operand0`", (DST, tile(X), nl.add, tile(V[:1]), nl.add), {}),
    "no vector": ("NK109", "`operand0`", (DST, tile(X), nl.add, tile(X), nl.add), {}),
    "HBM": ("NK201", "`data`", (DST, tile(X, "hbm"), nl.add, 1.0, nl.add), {}),
    "vector's dtype": ("NK301", "`operand0`", (DST, tile(N), nl.add, tile(N[:, :1]), nl.add), {}),
    "packed": ("NK301", "`data`", (DST, tile(PACKED), nl.add, 1.0, nl.add), {}),
    "bits": ("NK306", "`op0`", (DST, tile(N), nl.bitwise_or, 1, nl.add), {}),
    "subtract": ("NK306", "`reduce_op`", (DST, tile(X), nl.add, 1.0, nl.subtract), {}),
    "bits reduce": ("NK306", "`reduce_op`", (DST, tile(X), nl.add, 1.0, nl.bitwise_or), {}),
    "no reduction": ("NK609", "`reduce_op`", (DST, tile(X), nl.add, 1.0, None), {}),
    "reversed": ("NK609", "`reverse0`", (DST, tile(X), nl.add, 1.0, nl.add), {"reverse0": True}),
    "idle": ("NK609", "`reduce_cmd`", (DST, tile(X), nl.add, 1.0, nl.add), {"reduce_cmd": COMMANDS.idle}),
    "reset": ("NK609", "`reduce_cmd`", (DST, tile(X), nl.add, 1.0, nl.add), {"reduce_cmd": COMMANDS.reset}),
    "nothing to load": ("NK609", "`reduce_init`", (DST, tile(X), nl.add, 1.0, nl.add), LOAD),
    "not loaded": ("NK609", "`reduce_init`", (DST, tile(X), nl.add, 1.0, nl.add), {"reduce_init": 1.0}),
    "loaded dtype": (
        "NK301",
        "`reduce_init`",
        (DST, tile(X), nl.add, 1.0, nl.add),
        {**LOAD, "reduce_init": tile(N[:, :1])},
    ),
    "loaded size": ("NK109", "`reduce_init`", (DST, tile(X), nl.add, 1.0, nl.add), {**LOAD, "reduce_init": tile(X)}),
    "no operand": ("NK609", "`operand0`", (DST, tile(X), nl.add, None, nl.add), {}),
    "operand of a unary": ("NK609", "`operand0`", (DST, tile(X), nl.abs, 1.0, nl.add), {}),
}


@pytest.mark.parametrize("case", REDUCE_REFUSED)
def test_what_tensor_scalar_reduce_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REDUCE_REFUSED[case]
    finding = refusal(nisa.tensor_scalar_reduce, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


@pytest.mark.parametrize("operand", [None, 0, 0.0])
def test_absolute_maximum_as_production_kernels_take_it(operand: Any) -> None:
    """``op0=nl.abs`` with operand None or 0, reduced by the maximum."""
    x = sample((64, 20))
    issued = issue(nisa.tensor_scalar_reduce, empty(x.shape), tile(x), nl.abs, operand, nl.maximum, empty((64, 1)))
    np.testing.assert_array_equal(issued.dst, np.abs(x))
    np.testing.assert_array_equal(issued.views["reduce_res"], np.abs(x).max(axis=1, keepdims=True))
