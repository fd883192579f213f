"""nisa.tensor_tensor against NumPy: values, exactness, engines, views, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, issue, refusal, tile
from tests.isa.oracles import ARITHMETIC, BITWISE, FLOATS, INTEGERS, MAGNITUDE, float64, held, sample, words

COMMUTATIVE = (
    "add",
    "multiply",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
)
MIRRORED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}


def small_integers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values among which comparisons are often equal and logical operators often false."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARITHMETIC)
def test_each_arithmetic_operator_gives_what_numpy_gives(name: str) -> None:
    """In float32 the result of one operation is the float64 result, rounded once; comparisons give 1.0 and 0.0."""
    x, y = small_integers((128, 33), 1), small_integers((128, 33), 2)
    with np.errstate(all="ignore"):
        expected = ARITHMETIC[name](float64(x), float64(y)).astype(np.float32)
    result = issue(nisa.tensor_tensor, empty(x.shape), tile(x), tile(y), getattr(nl, name)).dst
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", MAGNITUDE)
def test_magnitude_operators_keep_the_sign_and_give_the_second_of_a_tie(name: str) -> None:
    """``abs_max(-5, 3)`` is -5, ``abs_max(1, -1)`` is -1: the winner as it is (NeuronCore-v4)."""
    x = np.array([[-5, 1, 3, -2], [0, -0.5, 7, -7]], np.float32)
    y = np.array([[3, -1, -4, 2], [-1, 0.25, -7, 7]], np.float32)
    result = issue(nisa.tensor_tensor, empty(x.shape), tile(x), tile(y), getattr(nl, name), chip="trn3").dst
    np.testing.assert_array_equal(result, MAGNITUDE[name](x, y))


@pytest.mark.parametrize("first", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("second", [nl.float32, nl.bfloat16, nl.int16], ids=str)
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int8, nl.uint8, nl.tfloat32], ids=str)
def test_dtypes_are_widened_to_float32_and_cast_once(first: Any, second: Any, result: Any) -> None:
    """Whatever the operand dtypes, the sum is formed in float32 and rounded once into the destination's dtype."""
    x, y = sample((64, 24), first, 1, -90, 90), sample((64, 24), second, 2, -90, 90)
    issued = issue(nisa.tensor_tensor, empty(x.shape, result), tile(x, dtype=first), tile(y, dtype=second), nl.add)
    np.testing.assert_array_equal(issued.dst, held(float64(x) + float64(y), result))


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bitwise_operators_work_on_the_bits(name: str, dtype: Any) -> None:
    """Integers of any width, without a detour through float32."""
    x, y = words((128, 17), dtype, 1), words((128, 17), dtype, 2)
    result = issue(nisa.tensor_tensor, empty(x.shape, dtype), tile(x), tile(y), getattr(nl, name)).dst
    np.testing.assert_array_equal(result, BITWISE[name](x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_are_logical_and_lose_everything_from_the_width_on(dtype: Any) -> None:
    """A right shift fills with zeros below zero too; an amount of the width or more leaves 0."""
    width = dtype.itemsize * 8
    x = words((32, 40), dtype, 3)
    amount = np.random.default_rng(4).integers(0, 2 * width, x.shape).astype(dtype.dtype)
    if np.iinfo(dtype.dtype).min < 0:
        amount[0] = -1
    unsigned = x.view(f"u{dtype.itemsize}").astype(object)
    inside = (amount >= 0) & (amount < width)
    shift = np.where(inside, amount, 0).astype(object)
    left = np.where(inside, (unsigned << shift) % (1 << width), 0)
    right = np.where(inside, unsigned >> shift, 0)
    for name, expected in (("left_shift", left), ("right_shift", right)):
        result = issue(nisa.tensor_tensor, empty(x.shape, dtype), tile(x), tile(amount), getattr(nl, name)).dst
        np.testing.assert_array_equal(result.view(f"u{dtype.itemsize}").astype(object), expected)


@given(st.sampled_from(COMMUTATIVE), st.integers(1, 128), st.integers(1, 64), st.integers(0, 2**32 - 1))
def test_commutative_operators_do_not_mind_the_order(name: str, partitions: int, free: int, seed: int) -> None:
    """Swapping the operands changes nothing."""
    x, y = small_integers((partitions, free), seed), small_integers((partitions, free), seed + 1)
    forth = issue(nisa.tensor_tensor, empty(x.shape), tile(x), tile(y), getattr(nl, name)).dst
    back = issue(nisa.tensor_tensor, empty(x.shape), tile(y), tile(x), getattr(nl, name)).dst
    np.testing.assert_array_equal(forth, back)


@pytest.mark.parametrize("name", MIRRORED)
def test_comparisons_mirror(name: str) -> None:
    """``x < y`` is ``y > x``."""
    x, y = small_integers((16, 50), 5), small_integers((16, 50), 6)
    forth = issue(nisa.tensor_tensor, empty(x.shape), tile(x), tile(y), getattr(nl, name)).dst
    back = issue(nisa.tensor_tensor, empty(x.shape), tile(y), tile(x), getattr(nl, MIRRORED[name])).dst
    np.testing.assert_array_equal(forth, back)


# --- 32-bit integers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [nl.int32, nl.uint32], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "logical_and"])
def test_words_are_exact_on_the_gpsimd_engine(dtype: Any, name: str) -> None:
    """int32 and uint32 throughout go to the GpSimd Engine by default: all 32 bits count, and sums wrap."""
    x, y = words((64, 40), dtype, 1), words((64, 40), dtype, 2)
    y[:, ::4] = x[:, ::4]
    wide = ARITHMETIC[name](x.astype(np.int64), y.astype(np.int64))  # products wrap at 2**64, which 2**32 divides
    expected = wide.astype(np.uint32)
    issued = issue(nisa.tensor_tensor, empty(x.shape, dtype), tile(x), tile(y), getattr(nl, name))
    np.testing.assert_array_equal(issued.dst.view(np.uint32), expected)
    assert issued.instruction.engine == "gpsimd"


def test_words_of_both_signs_are_exact_too() -> None:
    """int32 with uint32 into int32: "when all input/output tiles are int32 or uint32"."""
    x, y = words((8, 16), nl.int32, 1), words((8, 16), nl.uint32, 2)
    expected = (x.astype(object) + y.astype(object)) % 2**32
    result = issue(nisa.tensor_tensor, empty(x.shape, nl.int32), tile(x), tile(y), nl.add).dst
    np.testing.assert_array_equal(result.view(np.uint32).astype(object), expected)


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
def test_words_go_through_float32_on_the_vector_engine(memory: str) -> None:
    """Asked for, or forced by an operand in PSUM, the Vector Engine adds in float32: 2**24 + 1 is 2**24."""
    x = np.array([[2**24, 16777217, -(2**31), 5]], np.int32)
    y = np.array([[1, 0, -1, 7]], np.int32)
    engine = {"engine": nisa.engine.vector} if memory == "sbuf" else {}
    issued = issue(nisa.tensor_tensor, empty(x.shape, nl.int32), tile(x), tile(y, memory), nl.add, **engine)
    np.testing.assert_array_equal(issued.dst, [[2**24, 2**24, -(2**31), 12]])
    assert issued.instruction.engine == "vector"


def test_other_integers_stay_on_the_vector_engine() -> None:
    """int16 saturates on write, as every cast from float32 does."""
    x = np.full((4, 4), 30000, np.int16)
    issued = issue(nisa.tensor_tensor, empty(x.shape, nl.int16), tile(x), tile(x), nl.add)
    assert (issued.dst == 32767).all()
    assert issued.instruction.engine == "vector"


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.int32], ids=str)
def test_power_runs_on_the_gpsimd_engine(dtype: Any) -> None:
    """``x ** y``; a negative base with a fractional exponent is NaN."""
    x = np.array([[2, 3, -2, 9]], dtype.dtype)
    y = np.array([[10, 2, 3, 0]], dtype.dtype)
    issued = issue(nisa.tensor_tensor, empty(x.shape, dtype), tile(x), tile(y), nl.power)
    np.testing.assert_array_equal(issued.dst.astype(np.float32), [[1024, 9, -8, 1]])
    assert issued.instruction.engine == "gpsimd"


# --- views and aliases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aliased", ["data1", "data2", "both"])
@pytest.mark.parametrize("name", ["subtract", "logical_and", "bitwise_xor"])
def test_the_destination_may_be_an_operand(aliased: str, name: str) -> None:
    """In place, element by element: also where it is the second operand."""
    dtype = np.int16 if name == "bitwise_xor" else np.float32
    x, y = small_integers((128, 20), 1).astype(dtype), small_integers((128, 20), 2).astype(dtype)
    first, second = tile(x), tile(y)
    second = first if aliased == "both" else second
    dst = second if aliased == "data2" else first
    result = issue(nisa.tensor_tensor, dst, first, second, getattr(nl, name)).dst
    oracle = {**ARITHMETIC, **BITWISE}[name]
    np.testing.assert_array_equal(result, oracle(x, x if aliased == "both" else y).astype(dtype))


def test_overlapping_views_are_read_before_they_are_written() -> None:
    """Columns shifted by one into the same tensor: the result is that of separate tensors."""
    x = sample((16, 33))
    data = tile(x)
    dst, left, right = (data.seen(lambda t, s=s: t[:, s : s + 32]) for s in (1, 0, 1))
    result = issue(nisa.tensor_tensor, dst, left, right, nl.add, rules="report").dst
    np.testing.assert_array_equal(result, x[:, 0:32] + x[:, 1:33])


VIEWS = {
    "step": (lambda t: t[:, 0:32:2], lambda a: a[:, 0:32:2]),
    "permuted": (lambda t: t.reshape((64, 4, 8)).permute((0, 2, 1)), lambda a: a.reshape(64, 4, 8).transpose(0, 2, 1)),
    "broadcast": (lambda t: t[:, 3:4].broadcast(1, 16), lambda a: np.repeat(a[:, 3:4], 16, axis=1)),
    "pattern": (lambda t: t.ap([[32, 64], [8, 4], [0, 2], [3, 2]]), lambda a: a[:, _pattern()].reshape(64, 4, 2, 2)),
    "upper half": (lambda t: t[32:64, :], lambda a: a[32:64]),
}


def _pattern() -> np.ndarray:
    return np.array([8 * i + 3 * k for i in range(4) for _ in range(2) for k in range(2)])


@pytest.mark.parametrize("name", VIEWS)
def test_operands_may_be_any_view(name: str) -> None:
    """Slices with steps, permutations, broadcasts and patterns are read as NumPy reads them."""
    x, y = sample((64, 32), seed=1), sample((64, 32), seed=2)
    view, oracle = VIEWS[name]
    expected = oracle(x) * oracle(y)
    dst = empty(expected.shape)
    result = issue(nisa.tensor_tensor, dst, tile(x, view=view), tile(y, view=view), nl.multiply).dst
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", [name for name in VIEWS if name not in ("broadcast", "pattern")])
def test_the_destination_may_be_any_view(name: str) -> None:
    """Only the elements of the view are written."""
    x = sample((64, 32), seed=1)
    view, oracle = VIEWS[name]
    part = oracle(x)
    written = np.zeros_like(x)
    oracle(written)[...] = part + part
    dst = tile(np.zeros_like(x), view=view)
    storage = issue(nisa.tensor_tensor, dst, tile(part), tile(part), nl.add).storages["dst"]
    np.testing.assert_array_equal(storage, written)


def test_free_dimensions_may_differ_in_shape() -> None:
    """Equally many elements per partition in the same order is all that counts."""
    x, y = sample((16, 24), seed=1), sample((16, 2, 12), seed=2)
    result = issue(nisa.tensor_tensor, empty((16, 4, 6)), tile(x), tile(y), nl.add).dst
    np.testing.assert_array_equal(result, (x + y.reshape(16, 24)).reshape(16, 4, 6))


def test_a_masked_destination_keeps_its_other_lanes() -> None:
    """Only the lanes of the mask are written."""
    x = sample((32, 10), seed=1)
    where = np.random.default_rng(2).random(x.shape) < 0.5
    dst = tile(np.full_like(x, 7), view=lambda tensor: MaskedTensor.of(tensor, where))
    storage = issue(nisa.tensor_tensor, dst, tile(x), tile(x), nl.add).storages["dst"]
    np.testing.assert_array_equal(storage, np.where(where, x + x, 7))


@pytest.mark.parametrize("memories", [("sbuf", "sbuf"), ("psum", "sbuf"), ("sbuf", "psum")], ids=str)
@pytest.mark.parametrize("target", ["sbuf", "psum"])
def test_one_operand_may_be_in_psum(memories: tuple[str, str], target: str) -> None:
    """The three legal cases, into either memory."""
    x, y = sample((128, 64), seed=1), sample((128, 64), seed=2)
    dst = empty(x.shape, memory=target)
    result = issue(nisa.tensor_tensor, dst, tile(x, memories[0]), tile(y, memories[1]), nl.add).dst
    np.testing.assert_array_equal(result, x + y)


def test_both_call_forms() -> None:
    """Positional and by keyword."""
    x = sample((4, 4))
    forms = [
        issue(nisa.tensor_tensor, empty((4, 4)), tile(x), tile(x), nl.add, nisa.engine.gpsimd, "sum"),
        issue(
            nisa.tensor_tensor,
            dst=empty((4, 4)),
            data1=tile(x),
            data2=tile(x),
            op=nl.add,
            engine=nisa.engine.gpsimd,
            name="sum",
        ),
    ]
    for issued in forms:
        np.testing.assert_array_equal(issued.dst, x + x)
        assert issued.instruction.engine == "gpsimd"


# --- refusals --------------------------------------------------------------------------------------------------------

X = np.ones((32, 8), np.float32)
N = np.ones((32, 8), np.int32)
PACKED = np.zeros((32, 8), nl.float8_e4m3fn_x4.dtype)
DST = empty((32, 8))
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "partitions": ("NK102", "`data2`", (DST, tile(X), tile(X[:16]), nl.add), {}),
    "destination's partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X), tile(X), nl.add), {}),
    "one partition": ("NK111", "`data2`", (DST, tile(X), tile(X[:1]), nl.add), {}),
    "elements": ("NK109", "`data2`", (DST, tile(X), tile(X[:, :4]), nl.add), {}),
    "destination's elements": ("NK109", "`dst`", (empty((32, 9)), tile(X), tile(X), nl.add), {}),
    "256 partitions": ("NK101", "`data1`", (empty((256, 2)), *[tile(np.ones((256, 2), np.float32))] * 2, nl.add), {}),
    "length": ("NK107", "`data1`", (empty((1, 70000)), *[tile(np.ones((1, 70000), np.float32))] * 2, nl.add), {}),
    "start": (
        "NK108",
        "`data1`",
        (DST, tile(np.ones((64, 8), np.float32), view=lambda t: t[16:48, :]), tile(X), nl.add),
        {},
    ),
    "rank": ("NK110", "`data1`", (DST, tile(X, view=lambda t: t.reshape((32, 1, 2, 1, 2, 2))), tile(X), nl.add), {}),
    "HBM": ("NK201", "`data1`", (DST, tile(X, "hbm"), tile(X), nl.add), {}),
    "destination in HBM": ("NK201", "`dst`", (empty((32, 8), memory="hbm"), tile(X), tile(X), nl.add), {}),
    "both in PSUM": ("NK201", "`data2`", (DST, tile(X, "psum"), tile(X, "psum"), nl.add), {}),
    "Scalar Engine": ("NK206", "`engine`", (DST, tile(X), tile(X), nl.add), {"engine": nisa.engine.scalar}),
    "GpSimd in PSUM": ("NK206", "`data2`", (DST, tile(X), tile(X, "psum"), nl.add), {"engine": nisa.engine.gpsimd}),
    "power in PSUM": ("NK206", "`data1`", (DST, tile(X, "psum"), tile(X), nl.power), {}),
    "power on Vector": ("NK206", "nl.power", (DST, tile(X), tile(X), nl.power), {"engine": nisa.engine.vector}),
    "bits of floats": ("NK301", "`data1`", (empty((32, 8), nl.int32), tile(X), tile(N), nl.bitwise_and), {}),
    "bits into floats": ("NK301", "`dst`", (DST, tile(N), tile(N), nl.bitwise_and), {}),
    "packed": ("NK301", "`data2`", (DST, tile(X), tile(PACKED), nl.add), {}),
    "activation": ("NK306", "`op`", (DST, tile(X), tile(X), nl.exp), {}),
    "unary": ("NK306", "`op`", (DST, tile(X), tile(X), nl.rsqrt), {}),
    "no operator": ("NK609", "`op`", (DST, tile(X), tile(X), "add"), {}),
    "no engine": ("NK609", "`engine`", (DST, tile(X), tile(X), nl.add), {"engine": "vector"}),
    "no tensor": ("NK609", "`data2`", (DST, tile(X), 1.0, nl.add), {}),
    "NumPy array": ("NK609", "`data2`", (DST, tile(X), X, nl.add), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = REFUSED[case]
    finding = refusal(nisa.tensor_tensor, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


@pytest.mark.parametrize("chip", ["trn1", "trn2"])
@pytest.mark.parametrize("name", MAGNITUDE)
def test_magnitude_operators_came_with_neuron_core_v4(chip: str, name: str) -> None:
    """Earlier generations do not have abs_max and abs_min."""
    finding = refusal(nisa.tensor_tensor, DST, tile(X), tile(X), getattr(nl, name), chip=chip)
    assert finding.rule == "NK606"
    assert f"nl.{name}" in finding.message


def test_256_partitions_are_computed_and_reported_once() -> None:
    """Under rules="report" the result is there, and one cause is one finding."""
    x = sample((256, 4))
    issued = issue(nisa.tensor_tensor, empty(x.shape), tile(x), tile(x), nl.add, rules="report")
    np.testing.assert_array_equal(issued.dst, x + x)
    assert issued.rules == ["NK101"]
