"""Indexing of tensors against NumPy's fancy indexing, and what is refused."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.access import access_of
from nkitools.dialects.legacy.indexing.mesh_grids import arange
from tests.dialects.legacy.running import outputs, random, refusal

HBM = MemoryRegion.private_hbm


def tensor_of(array: Any, memory: MemoryRegion = HBM) -> NkiTensor:
    """A tensor on an array."""
    return NkiTensor.whole(Storage(array.shape, as_dtype(array.dtype), memory, array=array, name="x"))


@st.composite
def accesses(draw: st.DrawFn, *, on_chip: bool = False) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """An array, an advanced index tuple that stays inside of it, and the same tuple for NumPy."""
    tile = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    keys = [tuple(slice(None) if dim == axis else None for dim in range(len(tile))) for axis in range(len(tile))]
    symbolic, numeric, sizes = [], [], []
    for dim in range(draw(st.integers(1, 4))):
        left: Any = draw(st.integers(0, 3))
        right: Any = left
        if on_chip:
            axes = [0] if dim == 0 else draw(st.lists(st.integers(1, len(tile) - 1), unique=True))
        else:
            axes = draw(st.lists(st.integers(0, len(tile) - 1), unique=True))
        for axis in axes:
            factor = 1 if on_chip and dim == 0 else draw(st.integers(-2, 3))
            left = left + factor * arange(tile[axis])[keys[axis]]
            right = right + factor * np.arange(tile[axis])[keys[axis]]
        low = int(np.min(right))
        symbolic.append(left - low)
        numeric.append(right - low)
        sizes.append(int(np.max(right)) - low + 1 + draw(st.integers(0, 2)))
    if not any(hasattr(item, "coefficients") for item in symbolic):
        symbolic[0] = symbolic[0] + 0 * arange(1)[:, None]
        numeric[0] = numeric[0] + 0 * np.arange(1)[:, None]
    array = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    return array, tuple(symbolic), tuple(numeric)


@given(accesses())
def test_an_access_in_hbm_is_numpys_without_a_copy(case: tuple[Any, Any, Any]) -> None:
    """Any affine access reads what NumPy's fancy indexing reads, as a view on the storage."""
    array, symbolic, numeric = case
    view = access_of(tensor_of(array), symbolic).view()
    expected = array[numeric]
    assert view.shape == expected.shape
    np.testing.assert_array_equal(view.read(), expected)
    assert np.shares_memory(view.read(), array)
    assert view.byte_offset == int(expected.flat[0]) * array.itemsize


@given(accesses(on_chip=True))
def test_an_access_on_chip_is_numpys_too(case: tuple[Any, Any, Any]) -> None:
    """The same on chip, where axis 0 is the partition dimension."""
    array, symbolic, numeric = case
    if array.ndim < 2:
        return
    view = access_of(tensor_of(array, MemoryRegion.sbuf), symbolic).view()
    np.testing.assert_array_equal(view.read(), array[numeric])


@given(accesses(), st.data())
def test_a_box_of_an_access_is_the_box_of_its_tile(case: tuple[Any, Any, Any], data: st.DataObject) -> None:
    """Restricted to a box, an access reads that box of the tile."""
    array, symbolic, numeric = case
    expected = array[numeric]
    box = []
    for size in expected.shape:
        first = data.draw(st.integers(0, size - 1))
        box.append((first, data.draw(st.integers(first + 1, size))))
    view = access_of(tensor_of(array), symbolic).view(tuple(box))
    np.testing.assert_array_equal(view.read(), expected[tuple(slice(*lane) for lane in box)])


@given(accesses(), st.data())
def test_an_access_beyond_a_tensor_is_refused_with_its_range(case: tuple[Any, Any, Any], data: st.DataObject) -> None:
    """Of an index that leaves a dimension the error says which values it takes, as AWS's does."""
    array, symbolic, numeric = case
    dim = data.draw(st.integers(0, array.ndim - 1))
    shift = array.shape[dim]
    moved = (*symbolic[:dim], symbolic[dim] + shift, *symbolic[dim + 1 :])
    low, high = int(np.min(numeric[dim])) + shift, int(np.max(numeric[dim])) + shift
    with pytest.raises(IndexError) as caught:
        access_of(tensor_of(array), moved).view()
    assert type(caught.value) is IndexError
    assert str(caught.value) == (
        f"Out-of-bound access for tensor `x` on dimension {dim}: "
        f"index range [{low}, {high}] exceed dimension size of {shift}"
    )
    assert caught.value.finding.rule == "NK402"  # type: ignore[attr-defined]


def copied(select: Any) -> Any:
    """A kernel that copies a selection of its input."""

    def kernel(x: Any) -> Any:
        tile = nl.load(select(x))
        result = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, tile)
        return result

    return kernel


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (lambda x: x[1], lambda x: x[1]),
        (lambda x: x[1, :, 4:8], lambda x: x[1, :, 4:8]),
        (lambda x: x[:, 1, 0:2], lambda x: x[:, 1, 0:2]),
        (lambda x: x[2, nl.ds(3, 5), :], lambda x: x[2, 3:8, :]),
        (lambda x: x[..., 7], lambda x: x[..., 7]),
        (lambda x: x[-1, ..., ::3], lambda x: x[-1, ..., ::3]),
        (lambda x: x[1, nl.arange(4)[:, None], nl.arange(6)[None, :]], lambda x: x[1, :4, :6]),
        (lambda x: x[1, nl.mgrid[0:4, 0:6].p, nl.mgrid[0:4, 0:6].x], lambda x: x[1, :4, :6]),
        (lambda x: x[1][nl.mgrid[2:4, 1:6]], lambda x: x[1, 2:4, 1:6]),
        (lambda x: x[0, 2 * nl.arange(4)[:, None], 8 - nl.arange(9)[None, :]], lambda x: x[0, 0:8:2, 8::-1]),
    ],
)
def test_forms_of_indices(select: Any, expected: Any) -> None:
    """Basic indices, nl.ds, grids and indices with steps in either direction select what NumPy selects."""
    x = random(3, 8, 9)
    np.testing.assert_array_equal(outputs(copied(select), x), expected(x))


def test_a_vector_in_hbm_is_indexed_into_a_column() -> None:
    """A 1-D tensor is loaded as a column, by slices as well as by an index of two dimensions."""
    x = random(64)
    np.testing.assert_array_equal(outputs(copied(lambda x: x[8:40]), x), x[8:40, None])
    np.testing.assert_array_equal(outputs(copied(lambda x: x[2 * nl.arange(32)[:, None]]), x), x[::2, None])


def on_tile(use: Any) -> Any:
    """A kernel that indexes a loaded tile."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        return nl.exp(use(tile, nl.arange(64)[:, None], nl.arange(64)[None, :]))

    return kernel


@pytest.mark.parametrize(
    ("use", "rule", "said"),
    [
        (lambda t, p, f: t[nl.arange(64), 0], "NK603", "err_1d_arange_not_supported"),
        (lambda t, p, f: t[p, :], "NK603", "err_unsupported_mixing_basic_advanced_tensor_indexing"),
        (lambda t, p, f: t[..., f], "NK603", "err_unsupported_mixing_basic_advanced_tensor_indexing"),
        (lambda t, p, f: t[p, nl.ds(0, 4)], "NK603", "err_unsupported_mixing_basic_advanced_tensor_indexing"),
        (lambda t, p, f: t[p], "NK603", "1 indices are given"),
        (lambda t, p, f: t[p, 5 * f % 64], "NK603", "%"),
        (lambda t, p, f: t[p // 2, f], "NK603", "//"),
        (lambda t, p, f: t[p, (2 * p + f) // 2], "NK603", "//"),
        (lambda t, p, f: t[p, f // nl.arange(1, 2)[:, None]], "NK603", "//"),
        (lambda t, p, f: t[p, f * f], "NK603", "product"),
        (lambda t, p, f: t[f, p], "NK603", "axis 0 of a tile"),
        (lambda t, p, f: t[p, p + f], "NK603", "axis 0 of a tile"),
        (lambda t, p, f: t[2 * nl.arange(32)[:, None], f], "NK603", "step of 2"),
        (lambda t, p, f: t[0 * p, f], "NK111", "64 partitions"),
        (lambda t, p, f: t[p, "a"], "NK603", "'a'"),
        (lambda t, p, f: t[0.5, 0], "NK603", "0.5"),
        (lambda t, p, f: t[t, f], "NK603", "one element a partition"),
        (lambda t, p, f: t[p, t + f], "NK603", "one element a partition"),
    ],
)
def test_what_is_no_index_of_a_tile(use: Any, rule: str, said: str) -> None:
    """Indices of other forms are refused by rule, with AWS's code where it has one."""
    finding = refusal(on_tile(use), random(64, 128))
    assert finding.rule == rule
    assert said in finding.message


@pytest.mark.parametrize(
    ("select", "dim", "low", "high"),
    [
        (lambda x: x[0:64, 0:129], 1, 0, 128),
        (lambda x: x[64, :], 0, 64, 64),
        (lambda x: x[..., nl.ds(100, 29)], 1, 100, 128),
        (lambda x: x[nl.arange(64)[:, None], 65 + nl.arange(64)[None, :]], 1, 65, 128),
        (lambda x: x[nl.arange(64)[:, None] - 1, nl.arange(64)[None, :]], 0, -1, 62),
    ],
)
def test_indices_out_of_bounds(select: Any, dim: int, low: int, high: int) -> None:
    """Every form of index is refused beyond the tensor, never clamped, and names the author's tensor."""
    finding = refusal(copied(select), random(64, 128))
    assert finding.rule == "NK402"
    size = (64, 128)[dim]
    assert finding.message.startswith(
        f"Out-of-bound access for tensor `x` on dimension {dim}: "
        f"index range [{low}, {high}] exceed dimension size of {size}"
    )


def test_an_index_beyond_the_tensor_counts_where_it_is_used() -> None:
    """The index alone is no error, a use without the mask is one, a use under the mask is none."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(128)[:, None], nl.arange(64)[None, :]
        padded = x[i_p, i_f]
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(padded, mask=i_p < 100)
        nl.store(result[i_p, i_f], tile, mask=i_p < 100)
        return result

    x = random(100, 64)
    np.testing.assert_array_equal(outputs(kernel, x), x)
