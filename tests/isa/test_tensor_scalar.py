"""nisa.tensor_scalar against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import ARITHMETIC, FLOATS, INTEGERS, float64, held, sample, words

BINARY: dict[str, Any] = {**ARITHMETIC, "power": np.power}
UNARY: dict[str, Any] = {
    "abs": np.abs,
    "square": np.square,
    "relu": lambda x: np.maximum(x, 0),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
SMALL = np.random.default_rng(0).integers(-2, 3, (96, 12)).astype(np.float32)
VECTOR = np.random.default_rng(1).integers(-2, 3, (96, 1)).astype(np.float32)


def rounded(values: Any) -> np.ndarray:
    """A float64 result as the engine's float32."""
    return np.asarray(values).astype(np.float32)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("operand", [2, -1.5, np.float32(0), VECTOR], ids=["int", "float", "zero", "vector"])
@pytest.mark.parametrize("name", BINARY)
def test_each_binary_operator_takes_numbers_and_vectors_on_either_side(name: str, operand: Any, reverse: bool) -> None:
    """``data <op> operand``, or ``operand <op> data`` with reverse0."""
    given_as = tile(operand) if isinstance(operand, np.ndarray) else operand
    sides = (float64(SMALL), float64(np.asarray(operand)))
    with np.errstate(all="ignore"):
        expected = rounded(BINARY[name](*(sides[::-1] if reverse else sides)))
    result = issue(nisa.tensor_scalar, empty(SMALL.shape), tile(SMALL), getattr(nl, name), given_as, reverse).dst
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("number", [1.0, 0.1, -3.5, 0.0, -0.0, 1e-46, -1e-46, 1e-40, 1e39, float("inf"), float("nan")])
def test_a_number_is_the_same_in_each_call(name: str, number: float) -> None:
    """Zeros of either sign too, and what float32 rounds to zero or to infinity, or holds with fewer digits."""
    x = np.array([[0.0, -0.0, 1.5, -2.0, 1e-45, 3e38]], np.float32)
    with np.errstate(all="ignore"):
        expected = BINARY[name](x, np.full(x.shape, number, np.float32))
    for _ in range(3):
        result = issue(nisa.tensor_scalar, empty(x.shape), tile(x), getattr(nl, name), number, rules="off").dst
        np.testing.assert_array_equal(result, expected)
        there = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(result[there]), np.signbit(expected[there]))


@pytest.mark.parametrize("operand", [None, 0, 0.0])
@pytest.mark.parametrize("name", UNARY)
def test_each_unary_operator_takes_no_operand(name: str, operand: Any) -> None:
    """Its operand is None or 0, and is not looked at."""
    x = np.abs(sample((64, 10))) + np.float32(0.25) if name == "rsqrt" else sample((64, 10))
    chip = "trn3" if name in ("square", "relu") else "trn2"
    result = issue(nisa.tensor_scalar, empty(x.shape), tile(x), getattr(nl, name), operand, chip=chip).dst
    np.testing.assert_array_max_ulp(result, rounded(UNARY[name](float64(x))), 2)


@pytest.mark.parametrize("instruction", [nisa.tensor_scalar, nisa.tensor_scalar_reduce])
@pytest.mark.parametrize("name", ["square", "relu"])
@pytest.mark.parametrize("chip", ["trn1", "trn2"])
def test_operators_that_came_with_the_fourth_core(instruction: Any, name: str, chip: str) -> None:
    """NK606: nl.square and nl.relu "are now accepted as op0 on trn3" (release notes of NKI 0.4)."""
    more = {} if instruction is nisa.tensor_scalar else {"reduce_op": nl.add, "reduce_res": empty((64, 1))}
    x = tile(sample((64, 10)))
    finding = refusal(instruction, empty((64, 10)), x, op0=getattr(nl, name), operand0=None, chip=chip, **more)
    assert (finding.rule, f"nl.{name}" in finding.message) == ("NK606", True)


@pytest.mark.parametrize("reverse", [False, True])
def test_magnitude_operators_keep_the_sign(reverse: bool) -> None:
    """The winner by magnitude as it is; a tie gives the second side (NeuronCore-v4)."""
    x, y = (VECTOR, SMALL) if reverse else (SMALL, VECTOR)
    for name, wins in (("abs_max", np.greater), ("abs_min", np.less)):
        expected = np.where(wins(np.abs(x), np.abs(y)), x, y)
        issued = issue(
            nisa.tensor_scalar, empty(SMALL.shape), tile(SMALL), getattr(nl, name), tile(VECTOR), reverse, chip="trn3"
        )
        np.testing.assert_array_equal(issued.dst, expected)


@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(sorted(BINARY)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.floats(-3, 3, width=32),
)
def test_two_operators_are_one_after_the_other(
    first: str, second: str, reverse0: bool, reverse1: bool, vector: bool, number: float
) -> None:
    """``(data <op0> operand0) <op1> operand1`` with a float32 in between, each side reversed on its own."""
    steps = ((first, reverse0, VECTOR if vector else np.float32(number)), (second, reverse1, np.float32(1.5)))
    expected = SMALL
    with np.errstate(all="ignore"):
        for name, reverse, operand in steps:
            sides = (float64(expected), float64(np.asarray(operand)))
            expected = rounded(BINARY[name](*(sides[::-1] if reverse else sides)))
    issued = issue(
        nisa.tensor_scalar,
        dst=empty(SMALL.shape),
        data=tile(SMALL),
        op0=getattr(nl, first),
        operand0=tile(VECTOR) if vector else number,
        reverse0=reverse0,
        op1=getattr(nl, second),
        operand1=1.5,
        reverse1=reverse1,
    )
    np.testing.assert_array_max_ulp(issued.dst, expected, 4)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int8, nl.uint16], ids=str)
def test_any_dtype_is_widened_and_cast_once(dtype: Any, result: Any) -> None:
    """Both steps run in float32, the cast comes after the second."""
    x = sample((32, 20), dtype, 1, -100, 100)
    issued = issue(
        nisa.tensor_scalar, empty(x.shape, result), tile(x, dtype=dtype), nl.multiply, 3.0, False, nl.add, 0.75
    )
    np.testing.assert_array_equal(issued.dst, held(rounded(float64(x) * 3) + np.float32(0.75), result))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("operand", [5, -1, "vector"])
def test_bitvec_operators_work_on_the_bits(dtype: Any, operand: Any) -> None:
    """And, or, xor, not and logical shifts of any integer dtype, also one after the other and reversed."""
    x = words((64, 12), dtype, 1)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    value = words((64, 1), dtype, 2) if operand == "vector" else np.asarray(operand).astype(dtype.dtype)
    given_as = tile(value) if operand == "vector" else operand
    issued = issue(
        nisa.tensor_scalar, empty(x.shape, dtype), tile(x), nl.bitwise_and, given_as, op1=nl.bitwise_xor, operand1=3
    )
    np.testing.assert_array_equal(issued.dst, (x & value) ^ dtype.dtype.type(3))
    shifted = issue(nisa.tensor_scalar, empty(x.shape, dtype), tile(x), nl.right_shift, 3, False, nl.left_shift, 1).dst
    np.testing.assert_array_equal(shifted.view(unsigned), (x.view(unsigned) >> 3) << 1)
    reversed_ = issue(
        nisa.tensor_scalar, empty(x.shape, dtype), tile(x & dtype.dtype.type(7)), nl.left_shift, 1, True
    ).dst
    np.testing.assert_array_equal(reversed_, (1 << (x & 7).astype(np.int64)).astype(dtype.dtype))
    inverted = issue(nisa.tensor_scalar, empty(x.shape, dtype), tile(x), nl.invert, None).dst
    np.testing.assert_array_equal(inverted, ~x)


def test_a_mask_of_the_upper_bit_is_not_a_float() -> None:
    """0xFFFFFFFF as an immediate names all bits of an int32."""
    x = words((4, 4), nl.int32)
    result = issue(nisa.tensor_scalar, empty(x.shape, nl.int32), tile(x), nl.bitwise_and, 0xFFFFFFFF).dst
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("dtype", [nl.int32, nl.uint32], ids=str)
def test_word_vectors_are_exact(dtype: Any) -> None:
    """The 32-bit address arithmetic: data * stride + base in integers, wrapping at 32 bits."""
    x, stride, base = words((16, 8), dtype, 1), words((16, 1), dtype, 2), words((16, 1), dtype, 3)
    expected = (x.astype(object) * stride.astype(object) + base.astype(object)) % 2**32
    issued = issue(
        nisa.tensor_scalar, empty(x.shape, dtype), tile(x), nl.multiply, tile(stride), op1=nl.add, operand1=tile(base)
    )
    np.testing.assert_array_equal(issued.dst.view(np.uint32).astype(object), expected)


def test_words_with_a_number_go_through_float32() -> None:
    """ "The engine automatically casts data.dtype to float32": beyond 2**24 the low bits are lost."""
    x = np.array([[2**24 + 1, -7]], np.int32)
    result = issue(nisa.tensor_scalar, empty(x.shape, nl.int32), tile(x), nl.add, 0).dst
    np.testing.assert_array_equal(result, [[2**24, -7]])


def test_bypass_passes_the_data_through() -> None:
    """Its operand may be missing, and its side does not matter."""
    for reverse in (False, True):
        issued = issue(
            nisa.tensor_scalar, empty(SMALL.shape), tile(SMALL), nl.bypass, None, reverse, nl.add, tile(VECTOR), True
        )
        np.testing.assert_array_equal(issued.dst, SMALL + VECTOR)


# --- engines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operators", "memory", "engine"),
    [
        ((nl.add, 1.0), "sbuf", "vector"),
        ((nl.rsqrt, None), "sbuf", "gpsimd"),
        ((nl.rsqrt, None), "psum", "vector"),
        ((nl.power, 2.0), "sbuf", "gpsimd"),
        ((nl.add, 1.0, False, nl.rsqrt, None), "sbuf", "gpsimd"),
    ],
    ids=["add", "rsqrt", "rsqrt of PSUM", "power", "add then rsqrt"],
)
def test_the_default_engine(operators: tuple[Any, ...], memory: str, engine: str) -> None:
    """The Vector Engine, but the GpSimd Engine for rsqrt and power wherever it reaches the operands."""
    x = np.ones((8, 4), np.float32)
    assert issue(nisa.tensor_scalar, empty(x.shape), tile(x, memory), *operators).instruction.engine == engine


@pytest.mark.parametrize("chip", ["trn2", "trn3"])
@pytest.mark.parametrize(
    "operators", [(nl.multiply, 2.0, False, nl.add, 3.0), (nl.multiply, 2.0), (nl.add, 2.0)], ids=len
)
def test_the_scalar_engine_multiplies_and_adds(operators: tuple[Any, ...], chip: str) -> None:
    """From NeuronCore-v3 on."""
    x = np.full((8, 4), 5, np.float32)
    issued = issue(nisa.tensor_scalar, empty(x.shape), tile(x), *operators, engine=nisa.engine.scalar, chip=chip)
    assert issued.instruction.engine == "scalar"
    assert (issued.dst == (13 if len(operators) == 5 else 10 if operators[0] is nl.multiply else 7)).all()


# --- views and aliases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
def test_in_place_with_a_vector_that_the_first_step_would_overwrite(dtype: Any) -> None:
    """``dst`` is ``data``, and both operands are columns of it: they are read as they were."""
    x = sample((32, 6), dtype, 1)
    data = tile(x, dtype=dtype)
    first, last = (data.seen(lambda t, c=c: t[:, c : c + 1]) for c in (0, 5))
    if dtype is nl.bfloat16:
        first, last = tile(x[:, :1].astype(np.float32)), tile(x[:, 5:].astype(np.float32))
    result = issue(nisa.tensor_scalar, data, data, nl.subtract, first, op1=nl.multiply, operand1=last).dst
    expected = (x.astype(np.float32) - x[:, :1].astype(np.float32)) * x[:, 5:].astype(np.float32)
    np.testing.assert_array_equal(result, held(expected, dtype))


@pytest.mark.parametrize("name", ["subtract", "logical_and", "abs_max"])
def test_shifted_in_place(name: str) -> None:
    """A destination that overlaps the data by all but one column."""
    x = sample((16, 9), seed=3)
    data = tile(x)
    dst, source = data.seen(lambda t: t[:, 1:9]), data.seen(lambda t: t[:, 0:8])
    operands = (getattr(nl, name), 1.0, True, nl.add, 2.0)
    issued = issue(nisa.tensor_scalar, dst, source, *operands, chip="trn3", rules="report")
    apart = issue(nisa.tensor_scalar, empty((16, 8)), tile(x[:, :8]), *operands, chip="trn3")
    np.testing.assert_array_equal(issued.dst, apart.dst)


def test_views_and_shapes() -> None:
    """Strided data, a destination of other dimensions, a vector of as many dimensions as the data."""
    x, v = sample((64, 4, 8), seed=1), sample((64, 1, 1), seed=2)
    data = tile(x, view=lambda t: t.permute((0, 2, 1)))
    result = issue(nisa.tensor_scalar, empty((64, 32)), data, nl.add, tile(v)).dst
    np.testing.assert_array_equal(result, (x.transpose(0, 2, 1) + v).reshape(64, 32))


def test_a_masked_destination_keeps_its_other_lanes() -> None:
    """Also with two steps."""
    where = np.random.default_rng(2).random(SMALL.shape) < 0.5
    dst = tile(np.full_like(SMALL, 9), view=lambda tensor: MaskedTensor.of(tensor, where))
    storage = issue(nisa.tensor_scalar, dst, tile(SMALL), nl.add, 1.0, False, nl.multiply, 3.0).storages["dst"]
    np.testing.assert_array_equal(storage, np.where(where, (SMALL + 1) * 3, 9))


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_psum_operands(memory: str) -> None:
    """Data, operands and destination in either memory."""
    dst = empty(SMALL.shape, memory=memory)
    issued = issue(
        nisa.tensor_scalar, dst, tile(SMALL, "psum"), nl.add, tile(VECTOR, memory), op1=nl.subtract, operand1=1.0
    )
    np.testing.assert_array_equal(issued.dst, SMALL + VECTOR - 1)


# --- refusals --------------------------------------------------------------------------------------------------------

X = np.ones((32, 8), np.float32)
N = np.ones((32, 8), np.int32)
V = np.ones((32, 1), np.float32)
DST = empty((32, 8))
SCALAR, GPSIMD = {"engine": nisa.engine.scalar}, {"engine": nisa.engine.gpsimd}
PACKED = np.zeros((32, 8), nl.float8_e4m3fn_x4.dtype)
TALL = np.ones((256, 2), np.float32)
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "partitions": ("NK102", "`operand0`", (DST, tile(X), nl.add, tile(V[:16])), {}),
    "destination's partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X), nl.add, 1.0), {}),
    "one partition": ("NK111", "`operand0`", (DST, tile(X), nl.add, tile(V[:1])), {}),
    "no vector": ("NK109", "`operand1`", (DST, tile(X), nl.add, 1.0, False, nl.add, tile(X)), {}),
    "elements": ("NK109", "`dst`", (empty((32, 7)), tile(X), nl.add, 1.0), {}),
    "256 partitions": ("NK101", "`data`", (empty(TALL.shape), tile(TALL), nl.add, 1.0), {}),
    "start": (
        "NK108",
        "`operand0`",
        (DST, tile(X), nl.add, tile(np.ones((64, 1), np.float32), view=lambda t: t[1:33, :])),
        {},
    ),
    "HBM": ("NK201", "`operand0`", (DST, tile(X), nl.add, tile(V, "hbm")), {}),
    "destination in HBM": ("NK201", "`dst`", (empty((32, 8), memory="hbm"), tile(X), nl.add, 1.0), {}),
    "bits elsewhere": ("NK206", "`engine`", (empty((32, 8), nl.int32), tile(N), nl.invert, None), GPSIMD),
    "GpSimd adds": ("NK206", "`engine`", (DST, tile(X), nl.add, 1.0), GPSIMD),
    "GpSimd in PSUM": ("NK206", "`data`", (DST, tile(X, "psum"), nl.rsqrt, None), GPSIMD),
    "Scalar subtracts": ("NK206", "`engine`", (DST, tile(X), nl.subtract, 1.0), SCALAR),
    "Scalar adds then multiplies": ("NK206", "`engine`", (DST, tile(X), nl.add, 1.0, False, nl.multiply, 2.0), SCALAR),
    "other engine": ("NK206", "`engine`", (DST, tile(X), nl.add, 1.0), {"engine": nisa.engine.tensor}),
    "bfloat16 vector": ("NK301", "`operand0`", (DST, tile(X), nl.add, tile(V.astype(nl.bfloat16.dtype))), {}),
    "int32 vector": ("NK301", "`operand0`", (DST, tile(X), nl.add, tile(N[:, :1])), {}),
    "bits of floats": ("NK301", "`data`", (empty((32, 8), nl.int32), tile(X), nl.bitwise_or, 1), {}),
    "bits of a float": ("NK301", "`operand0`", (empty((32, 8), nl.int32), tile(N), nl.bitwise_or, 1.0), {}),
    "packed": ("NK301", "`data`", (DST, tile(PACKED), nl.add, 1.0), {}),
    "kinds": ("NK306", "op1", (empty((32, 8), nl.int32), tile(N), nl.bitwise_or, 1, False, nl.add, 1), {}),
    "activation": ("NK306", "`op0`", (DST, tile(X), nl.tanh, None), {}),
    "no operator": ("NK609", "`op1`", (DST, tile(X), nl.add, 1.0, False, "add", 1.0), {}),
    "no operand": ("NK609", "`operand0`", (DST, tile(X), nl.add, None), {}),
    "no second operand": ("NK609", "`operand1`", (DST, tile(X), nl.add, 1.0, False, nl.add), {}),
    "no second operator": ("NK609", "`operand1`", (DST, tile(X), nl.add, 1.0, False, None, 2.0), {}),
    "sides of no operator": ("NK609", "`reverse1`", (DST, tile(X), nl.add, 1.0, False, None, None, True), {}),
    "operand of a unary": ("NK609", "`operand0`", (DST, tile(X), nl.abs, 5.0), {}),
    "vector of a unary": ("NK609", "`operand0`", (DST, tile(X), nl.abs, tile(V)), {}),
    "text": ("NK609", "`operand0`", (DST, tile(X), nl.add, "1"), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.tensor_scalar, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


def test_the_scalar_engine_of_neuron_core_v2_has_no_tensor_scalar() -> None:
    """It came with NeuronCore-v3."""
    finding = refusal(nisa.tensor_scalar, DST, tile(X), nl.add, 1.0, **SCALAR, chip="trn1")
    assert finding.rule == "NK606"
    assert "`engine`" in finding.message


def test_the_operand_of_a_unary_operator_is_looked_at_in_each_call() -> None:
    """A number is data: that 0 was fine in one call says nothing about the next."""

    def body() -> None:
        x, dst = placed(tile(X)), placed(DST)
        nisa.tensor_scalar(dst, x, nl.abs, 0.0)
        with pytest.raises(Exception, match="NK609") as caught:
            nisa.tensor_scalar(dst, x, nl.abs, 5.0)
        assert "`operand0`" in str(caught.value)

    inside(body)
