"""The tensor class: attributes, operators, dtypes and what it refuses."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored


def test_attributes() -> None:
    """Shape, dtype, ndim and itemsize; the dtype equals NumPy's type and dtype."""
    seen = {}

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        assert isinstance(tile, nki.tensor)
        seen["tile"] = (tile.shape, tile.ndim, tile.itemsize, tile.dtype)
        assert tile.assert_shape((8, 4)) is tile
        return x

    outputs(kernel, random(8, 4, dtype=ml_dtypes.bfloat16))
    shape, ndim, itemsize, dtype = seen["tile"]
    assert (shape, ndim, itemsize) == ((8, 4), 2, 2)
    assert dtype == nl.bfloat16
    assert dtype == ml_dtypes.bfloat16
    assert dtype != np.float16


def test_a_shape_that_is_not_as_asserted() -> None:
    """assert_shape raises an AssertionError that says both shapes."""

    def kernel(x: Any) -> Any:
        return nl.load(x).assert_shape((4, 8))

    with pytest.raises(AssertionError, match=r"\[4, 8\].*\[8, 4\]"):
        outputs(kernel, random(8, 4))


@pytest.mark.parametrize("symbol", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_arithmetic_operators(symbol: Any) -> None:
    """Tile and tile, tile and number, number and tile, tile and vector compute as NumPy does."""
    x, y, column = random(16, 8), random(16, 8, seed=1), random(16, 1, seed=2)
    np.testing.assert_allclose(outputs(stored(symbol), x, y), symbol(x, y), rtol=1e-6)
    np.testing.assert_allclose(outputs(stored(lambda a: symbol(a, 1.5)), x), symbol(x, np.float32(1.5)), rtol=1e-6)
    np.testing.assert_allclose(outputs(stored(lambda a: symbol(1.5, a)), x), symbol(np.float32(1.5), x), rtol=1e-6)
    np.testing.assert_allclose(outputs(stored(symbol), x, column), symbol(x, column), rtol=1e-6)
    np.testing.assert_allclose(outputs(stored(symbol), column, x), symbol(column, x), rtol=1e-6)


@pytest.mark.parametrize("symbol", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_give_truth_values(symbol: Any) -> None:
    """Comparisons are of dtype bool."""
    x, y = random(16, 8), random(16, 8, seed=1)
    y[::2] = x[::2]
    measured = outputs(stored(symbol), x, y)
    assert measured.dtype == np.bool_
    np.testing.assert_array_equal(measured, symbol(x, y))


@pytest.mark.parametrize("symbol", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_bit_operators(symbol: Any) -> None:
    """Bit operators work on integers."""
    x = np.arange(64, dtype=np.uint32).reshape(8, 8) * 9
    np.testing.assert_array_equal(outputs(stored(lambda a: symbol(a, np.uint32(3))), x), symbol(x, np.uint32(3)))


def test_unary_operators() -> None:
    """-x, abs(x), and ~x of integers and of truth values."""
    x = random(8, 8)
    np.testing.assert_array_equal(outputs(stored(lambda a: -a), x), -x)
    np.testing.assert_array_equal(outputs(stored(abs), x), abs(x))
    np.testing.assert_array_equal(outputs(stored(lambda a: ~(a > 0)), x), ~(x > 0))
    n = np.arange(64, dtype=np.int32).reshape(8, 8)
    np.testing.assert_array_equal(outputs(stored(lambda a: ~a), n), ~n)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (np.int32, np.float16, np.float16),
        (np.uint16, np.float32, np.float32),
        (np.float32, ml_dtypes.bfloat16, np.float32),
        (np.float16, ml_dtypes.bfloat16, np.float32),
        (ml_dtypes.float8_e4m3, np.float16, np.float16),
        (ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16),
        (np.int16, np.int32, np.int32),
        (np.uint16, np.int32, np.int32),
        (np.int8, np.uint8, np.int16),
        (np.int8, np.uint16, np.int32),
        (np.int32, np.uint32, np.float32),
    ],
)
def test_promotion_of_tiles(first: Any, second: Any, expected: Any) -> None:
    """Two dtypes promote as the documentation's table has it."""
    x, y = np.ones((4, 4), first), np.ones((4, 4), second)
    for pair in ((x, y), (y, x)):
        measured = outputs(stored(operator.add), *pair)
        assert measured.dtype == expected
        np.testing.assert_array_equal(measured.astype(np.float32), np.full((4, 4), 2))


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        (np.float16, 1.5, np.float32),
        (np.int8, 2, np.int32),
        (np.uint8, True, np.uint8),
        (ml_dtypes.bfloat16, 2, ml_dtypes.bfloat16),
        (np.float16, np.float16(2), np.float16),
        (np.int8, np.int8(2), np.int8),
        (np.int32, 0.5, np.float32),
        (np.float32, np.float64(2), np.float32),
    ],
)
def test_promotion_with_numbers(dtype: Any, number: Any, expected: Any) -> None:
    """A Python number counts as the widest dtype of its kind, a NumPy scalar as its own."""
    measured = outputs(stored(lambda a: a + number), np.ones((4, 4), dtype))
    assert measured.dtype == expected
    np.testing.assert_array_equal(measured.astype(np.float32), np.full((4, 4), 1 + float(number)))


def test_operators_do_not_broadcast_partitions() -> None:
    """A row and a tile of more partitions are refused by operators (NK111), which nl.add is not."""
    x, row = random(16, 8), random(1, 8, seed=1)
    assert refusal(stored(operator.add), x, row).rule == "NK111"
    np.testing.assert_allclose(outputs(stored(nl.add), x, row), x + row, rtol=1e-6)


def test_shapes_that_do_not_fit() -> None:
    """Different partitions (NK102) and free sizes (NK109) are refused."""
    assert refusal(stored(operator.add), random(16, 8), random(8, 8)).rule == "NK102"
    assert refusal(stored(operator.add), random(16, 8), random(16, 4)).rule == "NK109"


def test_views_of_a_tile() -> None:
    """reshape, expand_dims and view show the same elements; astype copies and converts."""
    x = random(8, 12)
    np.testing.assert_array_equal(outputs(stored(lambda a: a.reshape((8, 3, 4))), x), x.reshape(8, 3, 4))
    np.testing.assert_array_equal(outputs(stored(lambda a: a.expand_dims(2)), x), x[:, :, None])
    np.testing.assert_array_equal(outputs(stored(lambda a: a.view(nl.int32)), x), x.view(np.int32))
    measured = outputs(stored(lambda a: a.astype(nl.bfloat16)), x)
    np.testing.assert_array_equal(measured, x.astype(ml_dtypes.bfloat16))


def test_broadcast_to() -> None:
    """Free dimensions and partitions broadcast; what does not fit is refused."""
    row, column = random(1, 6), random(8, 1)
    np.testing.assert_array_equal(outputs(stored(lambda a: a.broadcast_to((8, 6))), row), np.broadcast_to(row, (8, 6)))
    np.testing.assert_array_equal(
        outputs(stored(lambda a: a.broadcast_to((8, 6))), column), np.broadcast_to(column, (8, 6))
    )
    assert refusal(stored(lambda a: a.broadcast_to((8, 5))), row).rule == "NK109"


def test_a_result_in_another_shape_leaves_the_kernel() -> None:
    """Reshaped tensors in HBM may be returned."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x))
        return result.reshape((32, 1)), result

    x = random(8, 4)
    flat, whole = outputs(kernel, x)
    np.testing.assert_array_equal(flat, x.reshape(32, 1))
    np.testing.assert_array_equal(whole, x)


@pytest.mark.parametrize(
    ("use", "rule", "said"),
    [
        (lambda t: bool(t), "NK602", "err_ambiguous_tensor_truth_value"),
        (lambda t: bool(t[0:1, 0:1]), "NK602", "err_dynamic_control_flow_not_supported"),
        (lambda t: list(t), "NK601", "iterated"),
        (lambda t: np.asarray(t), "NK601", "NumPy"),
        (lambda t: t.data, "NK607", "`data`"),
        (lambda t: nl.exp(t + nl.arange(8)[None, :]), "NK609", "DynamicIndex"),
        (lambda t: t * nl.arange(8)[None, :], "NK607", "dynamic offset"),
        (lambda t: nl.add(t, nl.arange(8)[None, :]), "NK609", "must be a tile"),
        (lambda t: nl.add(1, 2), "NK609", "at least one tile"),
        (lambda t: nl.exp(np.ones((8, 8), np.float32)), "NK609", "ndarray"),
    ],
)
def test_what_a_tensor_is_not(use: Any, rule: str, said: str) -> None:
    """Truth values, iteration, NumPy and unknown attributes are refused by rule."""
    finding = refusal(stored(use), random(8, 8))
    assert finding.rule == rule
    assert said in finding.message


def test_comparison_with_none() -> None:
    """`is None` and `== None` ask whether a tensor was given; no element is compared."""

    def kernel(x: Any, bias: Any = None) -> Any:
        assert (x == None) is False  # noqa: E711
        assert bias is None
        return x

    outputs(kernel, random(4, 4))


def test_memory_and_partition_errors_carry_awss_codes() -> None:
    """Under this dialect a message has the rule's name and AWS's."""
    finding = refusal(lambda x: nl.load(nl.load(x)), random(8, 8))
    assert (finding.rule, "err_unsupported_memory" in finding.message) == ("NK201", True)
    finding = refusal(lambda x: nl.exp(x), random(8, 8))
    assert (finding.rule, "err_unsupported_memory" in finding.message) == ("NK201", True)
    finding = refusal(lambda x: nl.load(x), random(256, 8))
    assert (finding.rule, "err_num_partition_exceed_arch_limit" in finding.message) == ("NK101", True)
    finding = refusal(lambda x: nisa.tensor_tensor(nl.load(x), nl.load(x[0:4, :]), op=nl.add), random(8, 8))
    assert (finding.rule, "err_num_partition_mismatch" in finding.message) == ("NK102", True)
