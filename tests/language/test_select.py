"""nl.where chooses between tiles as NumPy's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, inside, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, held, sample


def chosen(condition: Any, x: Any, y: Any, **kwargs: Any) -> np.ndarray:
    """What ``nl.where`` gives of arrays (which become tiles, as Tiles do) and numbers."""

    def operand(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = tile(value)
        return value if isinstance(value, (int, float)) or value is None else placed(value)

    def body() -> np.ndarray:
        result = nl.where(operand(condition), operand(x), operand(y), **kwargs)
        assert result.buffer is nl.sbuf
        return np.array(result.array)

    values: np.ndarray = inside(body)
    return values


C = np.arange(64).reshape(8, 8) % 3 > 0
X, Y = sample((8, 8)), sample((8, 8), seed=1)


@given(
    st.sampled_from([*FLOATS, *INTEGERS, nl.bool]),
    st.sampled_from([*FLOATS, *INTEGERS]),
    st.sampled_from([None, nl.float32, nl.bfloat16, nl.int16]),
    st.integers(0, 99),
)
def test_it_chooses_by_a_condition_of_any_dtype(condition: Any, dtype: Any, result: Any, seed: int) -> None:
    """1 and 0 of any dtype; the result has the tiles' dtype, or the one asked for."""
    x, y = sample((8, 8), dtype, seed), sample((8, 8), dtype, seed + 1)
    flags = tile(C.astype(condition.dtype), dtype=condition)
    found = chosen(flags, tile(x, dtype=dtype), tile(y, dtype=dtype), dtype=result)
    expected = np.where(C, x, y)
    np.testing.assert_array_equal(found, expected if result is None else held(expected, result))


@pytest.mark.parametrize("numbers", [(True, False), (False, True)])
def test_one_of_them_may_be_a_number(numbers: tuple[bool, bool]) -> None:
    """As NumPy's; the dtype is the tile's."""
    x, y = (
        number if is_number else values for is_number, number, values in zip(numbers, (2.5, -1), (X, Y), strict=True)
    )
    found = chosen(C.astype(np.float32), x, y)
    np.testing.assert_array_equal(found, np.where(C, np.float32(x), np.float32(y)))


def test_values_are_copied_not_computed() -> None:
    """NaN and infinity stay where they are chosen and nowhere else; 2**24 + 1 is exact; NaN chooses ``x``."""
    wild = np.array([[np.nan, np.inf, -np.inf, 1.0]], np.float32)
    flags = np.array([[1, 0, 0, np.nan]], np.float32)
    np.testing.assert_array_equal(chosen(flags, wild, 7.0), [[np.nan, 7, 7, 1]])
    np.testing.assert_array_equal(chosen(1 - flags[:, :3], wild[:, :3], 7.0), [[7, np.inf, -np.inf]])
    large = np.array([[2**24 + 1, -(2**24) - 1]], np.int32)
    np.testing.assert_array_equal(chosen(np.array([[1, 0]], np.int32), large, large[:, ::-1].copy()), [[2**24 + 1] * 2])


def test_free_dimensions_broadcast_and_operands_may_lie_in_psum() -> None:
    """Columns and rows of one element; every operand from PSUM."""
    column, narrow = X[:, :1], C[:, :1]
    np.testing.assert_array_equal(chosen(C, column, Y), np.where(C, column, Y))
    np.testing.assert_array_equal(chosen(narrow, X, column), np.where(narrow, X, column))
    np.testing.assert_array_equal(chosen(C, column, 3.0), np.where(C, column, 3))
    found = chosen(tile(C.astype(np.uint8), "psum"), tile(X, "psum"), tile(Y, "psum"))
    np.testing.assert_array_equal(found, np.where(C, X, Y))


def test_mixed_dtypes_are_promoted() -> None:
    """bfloat16 and float32 give float32."""
    half = sample((8, 8), nl.bfloat16, 2)
    np.testing.assert_array_equal(chosen(C, tile(half, dtype=nl.bfloat16), Y), np.where(C, half.astype(np.float32), Y))


def test_it_is_made_of_instructions() -> None:
    """The default's copy, the predicate, the predicated copy."""

    def kernel() -> None:
        nl.where(placed(tile(C.astype(np.float32))), placed(tile(X)), placed(tile(Y)))

    names = [each.name for each in nkitools.simulate(kernel, chip="trn2").instructions]
    assert sorted(names) == ["tensor_copy", "tensor_copy_predicated", "tensor_scalar"]


REFUSED = {
    "a number as condition": ("NK609", (1.0, X, Y), {}),
    "numbers only": ("NK609", (C, 1.0, 2.0), {}),
    "nothing": ("NK609", (C, X, None), {}),
    "partitions": ("NK102", (C, X[:4], Y), {}),
    "one partition": ("NK111", (C, X, Y[:1]), {}),
    "shapes": ("NK109", (C, X[:, :3], Y), {}),
    "dimensions": ("NK109", (C, X.reshape(8, 4, 2), Y), {}),
    "HBM": ("NK201", (C, tile(X, "hbm"), Y), {}),
    "float64": ("NK301", (C, X, Y), {"dtype": np.float64}),
    "256 partitions": ("NK101", (empty((256, 8)), empty((256, 8)), 0.0), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_refuses(case: str) -> None:
    """The documented rule."""
    rule, args, kwargs = REFUSED[case]
    with pytest.raises(nkitools.KernelError) as caught:
        chosen(*args, **kwargs)
    assert caught.value.finding.rule == rule
    assert rule in " ".join((nl.where.__doc__ or "").split()) or rule in ("NK108", "NK109", "NK110")


def test_a_number_that_saturates_is_reported_on_both_sides() -> None:
    """NK304, whether it is ``x`` or ``y``."""

    def kernel(sides: Any) -> None:
        condition, whole = placed(tile(C.astype(np.uint8))), placed(tile(X.astype(np.int8), dtype=nl.int8))
        nl.where(condition, *sides(whole))

    for sides in (lambda whole: (300, whole), lambda whole: (whole, 300)):
        run = nkitools.simulate(lambda sides=sides: kernel(sides), rules="report")
        assert [each.rule for each in run.findings] == ["NK304"]
