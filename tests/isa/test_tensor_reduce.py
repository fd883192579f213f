"""nisa.tensor_reduce against folds in NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, issue, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample, words

STEPS: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logical_and": lambda x, y: np.logical_and(x != 0, y != 0).astype(np.float64),
    "logical_or": lambda x, y: np.logical_or(x != 0, y != 0).astype(np.float64),
    "logical_xor": lambda x, y: np.logical_xor(x != 0, y != 0).astype(np.float64),
}
BITS: dict[str, Any] = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


def folded(step: Any, values: np.ndarray) -> np.ndarray:
    """The elements of each row (all free dimensions as one), one after the other."""
    flat = values.reshape(values.shape[0], -1)
    return functools.reduce(step, flat.T)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_each_operator_folds_the_row(name: str, negate: bool) -> None:
    """Small integers, so that the order of float32 additions does not show; ``negate`` is times -1."""
    x = np.random.default_rng(1).integers(-2, 4, (128, 11)).astype(np.float32)
    expected = folded(STEPS[name], float64(x)) * (-1 if negate else 1)
    result = issue(nisa.tensor_reduce, empty((128, 1)), getattr(nl, name), tile(x), 1, negate).dst
    np.testing.assert_array_equal(result[:, 0], expected)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bitvec_operators_fold_the_bits(name: str, dtype: Any) -> None:
    """Integers of any width; float32 never sees them."""
    x = words((64, 9), dtype, 1)
    result = issue(nisa.tensor_reduce, empty((64, 1), dtype), getattr(nl, name), tile(x), axis=1).dst
    np.testing.assert_array_equal(result[:, 0], folded(BITS[name], x))


def test_two_thousand_bfloat16_ones_make_two_thousand() -> None:
    """The accumulation runs in float32: 2048 ones are 2048, not the 256 where bfloat16 would stop counting."""
    ones = np.ones((128, 2048), nl.bfloat16.dtype)
    result = issue(nisa.tensor_reduce, empty((128, 1), nl.bfloat16), nl.add, tile(ones), 1).dst
    assert (result.astype(np.float32) == 2048).all()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int8, nl.uint8], ids=str)
def test_any_dtype_is_widened_and_cast_once(dtype: Any, result: Any) -> None:
    """The sum is formed in float32 and cast to the destination's dtype; integers saturate."""
    x = np.rint(sample((32, 40), dtype, 1, -40, 40).astype(np.float32)).astype(dtype.dtype)
    issued = issue(nisa.tensor_reduce, empty((32, 1), result), nl.add, tile(x, dtype=dtype), 1)
    np.testing.assert_array_equal(issued.dst[:, 0], held(float64(x).sum(axis=1), result))


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["add", "maximum", "multiply"]),
    st.booleans(),
)
def test_the_last_dimensions_are_reduced(
    shape: list[int], count: int, keepdims: bool, name: str, negative: bool
) -> None:
    """Axes in any spelling: an int, a tuple, a list, counted from the end; with or without the reduced dimensions."""
    count = min(count, len(shape) - 1)
    axes = tuple(range(len(shape) - count, len(shape)))
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(np.float32)
    oracle = {"add": np.sum, "maximum": np.max, "multiply": np.prod}[name]
    expected = oracle(float64(x), axis=axes, keepdims=keepdims)
    spelled: Any = tuple(axis - len(shape) for axis in axes) if negative else list(axes)
    if count == 1:
        spelled = spelled[0]
    dst_shape = expected.shape if expected.ndim > 1 else (*expected.shape, 1)
    result = issue(nisa.tensor_reduce, empty(dst_shape), getattr(nl, name), tile(x), spelled, False, keepdims).dst
    np.testing.assert_array_equal(result, expected.reshape(dst_shape))


def test_views_aliases_and_psum() -> None:
    """Permuted data, a column of the data itself as destination, data and destination in PSUM, a masked destination."""
    x = np.random.default_rng(0).integers(-9, 9, (32, 4, 8)).astype(np.float32)
    turned = tile(x, "psum", view=lambda t: t.permute((0, 2, 1)))
    np.testing.assert_array_equal(
        issue(nisa.tensor_reduce, empty((32, 8), memory="psum"), nl.add, turned, 2).dst, x.sum(axis=1)
    )
    data = tile(x[:, 0])
    column = data.seen(lambda t: t[:, 0:1])
    np.testing.assert_array_equal(issue(nisa.tensor_reduce, column, nl.add, data, 1).dst[:, 0], x[:, 0].sum(axis=1))
    where = np.arange(32)[:, None] < 20
    dst = tile(np.zeros((32, 1), np.float32), view=lambda t: MaskedTensor.of(t, where))
    np.testing.assert_array_equal(
        issue(nisa.tensor_reduce, dst, nl.maximum, tile(x[:, 0]), 1).storages["dst"],
        np.where(where, x[:, 0].max(axis=1, keepdims=True), 0),
    )


# --- refusals --------------------------------------------------------------------------------------------------------

X = np.ones((32, 4, 8), np.float32)
DST = empty((32, 4))
TALL = np.ones((256, 2), np.float32)
REFUSED: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "partition dimension": ("NK112", "`axis`", (DST, nl.add, tile(X), 0)),
    "partition dimension too": ("NK112", "`axis`", (DST, nl.add, tile(X), (0, 1, 2))),
    "not the last": ("NK112", "`axis`", (empty((32, 8)), nl.add, tile(X), 1)),
    "no such dimension": ("NK112", "`axis`", (DST, nl.add, tile(X), 3)),
    "partitions": ("NK102", "`dst`", (empty((16, 4)), nl.add, tile(X), 2)),
    "elements": ("NK109", "`dst`", (empty((32, 5)), nl.add, tile(X), 2)),
    "256 partitions": ("NK101", "`data`", (empty((256, 1)), nl.add, tile(TALL), 1)),
    "start": ("NK108", "`data`", (empty((32, 1)), nl.add, tile(TALL[:128], view=lambda t: t[8:40, :]), 1)),
    "HBM": ("NK201", "`data`", (DST, nl.add, tile(X, "hbm"), 2)),
    "bits of floats": ("NK301", "`data`", (empty((32, 4), nl.int32), nl.bitwise_and, tile(X), 2)),
    "packed": ("NK301", "`data`", (DST, nl.add, tile(np.zeros((32, 4, 8), nl.float8_e5m2_x4.dtype)), 2)),
    "abs_max": ("NK306", "`op`", (DST, nl.abs_max, tile(X), 2)),
    "power": ("NK306", "`op`", (DST, nl.power, tile(X), 2)),
    "shift": ("NK306", "`op`", (DST, nl.left_shift, tile(X), 2)),
    "rsqrt": ("NK306", "`op`", (DST, nl.rsqrt, tile(X), 2)),
    "activation": ("NK306", "`op`", (DST, nl.exp, tile(X), 2)),
    "no operator": ("NK609", "`op`", (DST, None, tile(X), 2)),
    "axis of text": ("NK609", "`axis`", (DST, nl.add, tile(X), "2")),
    "no axis": ("NK609", "`axis`", (DST, nl.add, tile(X), ())),
    "negated bits": (
        "NK609",
        "`negate`",
        (empty((32, 1), nl.int8), nl.bitwise_or, tile(np.ones((32, 8), np.int8)), 1, True),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args = REFUSED[case]
    finding = refusal(nisa.tensor_reduce, *args)
    assert finding.rule == rule
    assert named in finding.message


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_a_dimension_in_the_middle_is_reported_and_reduced_all_the_same(name: str) -> None:
    """Under rules="report" the result is what the author meant."""
    x = np.random.default_rng(0).integers(-9, 9, (32, 4, 8)).astype(np.float32)
    issued = issue(nisa.tensor_reduce, empty((32, 8)), getattr(nl, name), tile(x), 1, rules="report")
    np.testing.assert_array_equal(issued.dst, functools.reduce(STEPS[name], x.transpose(1, 0, 2)))
    assert issued.rules == ["NK112"]


@pytest.mark.parametrize("stride", range(1, 10))
@pytest.mark.parametrize("name", ["add", "maximum"])
def test_a_negated_reduction_into_one_column_of_a_tile(name: str, stride: int) -> None:
    """Every partition holds the negative of its row's fold, however many elements its column is apart from the next."""
    x = np.random.default_rng(stride).integers(-9, 9, (128, 5)).astype(np.float32)
    column = empty((128, stride), view=lambda tensor: tensor[:, stride - 1 : stride])
    result = issue(nisa.tensor_reduce, column, getattr(nl, name), tile(x), axis=1, negate=True).dst
    np.testing.assert_array_equal(result[:, 0], -folded(STEPS[name], float64(x)))
