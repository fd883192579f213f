"""Symbolic indices against NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.legacy.indexing.indices import Index, NonAffine
from nkitools.dialects.legacy.indexing.mesh_grids import arange, mgrid


def values_of(index: Index) -> Any:
    """An index as the array that it stands for."""
    return np.broadcast_to(index.values(tuple((0, size) for size in index.shape)), index.shape)


@given(st.integers(-5, 20), st.integers(1, 9), st.integers(1, 4))
def test_arange_counts_as_numpys_does(first: int, count: int, step: int) -> None:
    """Start, end and step mean what they mean in NumPy."""
    end = first + count * step
    np.testing.assert_array_equal(values_of(arange(first, end, step)), np.arange(first, end, step))


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Any, Any]:
    """An index expression over axes of some tile, and the same expression in NumPy."""
    sizes = draw(SHAPES)
    symbolic: Any = draw(st.integers(-3, 3))
    numeric: Any = symbolic
    for axis, size in enumerate(sizes):
        key = tuple(slice(None) if dim == axis else None for dim in range(len(sizes)))
        line, array = arange(size)[key], np.arange(size)[key]
        factor, shift = draw(st.integers(-3, 3)), draw(st.integers(-3, 3))
        match draw(st.sampled_from(["+", "-", "r-"])):
            case "+":
                symbolic, numeric = symbolic + factor * line + shift, numeric + factor * array + shift
            case "-":
                symbolic, numeric = symbolic - line * factor - shift, numeric - array * factor - shift
            case _:
                symbolic, numeric = (shift - symbolic) + line, (shift - numeric) + array
    return symbolic, numeric


@given(expressions())
def test_arithmetic_agrees_with_numpy(pair: tuple[Any, Any]) -> None:
    """Sums, differences and products with integers have the values, the shape and the bounds of NumPy's arrays."""
    symbolic, numeric = pair
    assert symbolic.shape == numeric.shape
    np.testing.assert_array_equal(values_of(symbolic), numeric)
    assert symbolic.bounds() == (numeric.min(), numeric.max())


def test_mgrid_gives_dense_indices_by_position_and_by_name() -> None:
    """nl.mgrid is NumPy's mgrid; .p is the partition index, .x and .y those of the free dimensions."""
    grid = mgrid[0:4, 2:5, 0:6:2]
    expected = np.mgrid[0:4, 2:5, 0:6:2]
    for index, array in zip(grid, expected, strict=True):
        assert index.shape == array.shape
        np.testing.assert_array_equal(values_of(index), array)
    assert grid.p is grid[0]
    assert grid.x is grid[1]
    assert grid.y is grid[2]


def test_slices_and_new_axes_of_an_index() -> None:
    """An index is subscripted with None and slices, as an array is."""
    index = 3 * arange(10)[:, None] + 1
    np.testing.assert_array_equal(values_of(index[2:8:3, :, None]), (3 * np.arange(10)[:, None] + 1)[2:8:3, :, None])
    np.testing.assert_array_equal(values_of(index[..., None]), (3 * np.arange(10)[:, None] + 1)[..., None])


def test_integers_of_numpy_take_part_on_either_side() -> None:
    """NumPy's integers leave the arithmetic to the index."""
    index = np.int64(2) * arange(3)[:, None] + np.int32(5)
    assert isinstance(index, Index)
    np.testing.assert_array_equal(values_of(index), 2 * np.arange(3)[:, None] + 5)


@pytest.mark.parametrize(
    "expression",
    [
        lambda i: i // 2,
        lambda i: i % 2,
        lambda i: i / 2,
        lambda i: i * i,
        lambda i: i * 0.5,
        lambda i: 7 // i,
        lambda i: 3 + 2 * (i % 4),
    ],
)
def test_what_is_not_affine_is_refused_where_it_is_used(expression: Any) -> None:
    """Floor division, remainders, fractions and products of indices are no indices (NK603)."""
    result = expression(arange(8)[:, None])
    assert isinstance(result, NonAffine)
    with pytest.raises(nkitools.KernelError) as caught:
        result.refuse()
    assert caught.value.finding.rule == "NK603"


def test_an_index_is_read_only() -> None:
    """Assignment to an index is refused with AWS's code."""
    with pytest.raises(nkitools.KernelError, match="err_cannot_assign_to_index") as caught:
        mgrid[0:1, 0:8].x[0, 5] = 1024
    assert caught.value.finding.rule == "NK603"


def test_indices_that_do_not_broadcast() -> None:
    """Two indices of different sizes along one axis are refused (NK603)."""
    with pytest.raises(nkitools.KernelError, match=r"\[4, 1\] and \[5, 1\]") as caught:
        arange(4)[:, None] + arange(5)[:, None]
    assert caught.value.finding.rule == "NK603"


@pytest.mark.parametrize("args", [(), (1, 2, 3, 4), (1.5,), (True,), (0, 4, 0)])
def test_arange_takes_integers(args: tuple[Any, ...]) -> None:
    """Other call forms of nl.arange are refused (NK609)."""
    with pytest.raises(nkitools.KernelError) as caught:
        arange(*args)
    assert caught.value.finding.rule == "NK609"
