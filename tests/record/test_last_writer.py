"""Who wrote an element last: compared with an array in which every write leaves its number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import layout_of
from nkitools.chip.memory_region import MemoryRegion
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.columns import Columns
from nkitools.record.last_writer import index_of, last_writer, last_writers
from tests.history.test_races import line_of

ROWS, COLUMNS = 8, 12

RANGES = st.tuples(
    st.integers(0, ROWS - 1),
    st.integers(1, ROWS),
    st.integers(0, COLUMNS - 1),
    st.integers(1, COLUMNS),
    st.sampled_from([1, 1, 2, 3]),
)


def slices_of(ranges: Any) -> tuple[slice, slice]:
    row, height, column, width, step = ranges
    return slice(row, min(ROWS, row + height)), slice(column, min(COLUMNS, column + width), step)


def painting(several: list[tuple[slice, slice]]) -> Any:
    """A kernel that copies slices of its argument into an output that it has copied whole first."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        for rows, columns in several:
            nisa.dma_copy(dst=out[rows, columns], src=x[rows, columns])
        return out

    return kernel


@given(drawn=st.lists(RANGES, max_size=6), index=st.tuples(st.integers(0, ROWS - 1), st.integers(0, COLUMNS - 1)))
def test_the_last_writer_is_the_one_whose_number_is_there(drawn: list[Any], index: tuple[int, int]) -> None:
    """Also of strided writes; and the element's index in what was written."""
    several = [slices_of(ranges) for ranges in drawn]
    run = nkitools.simulate(painting(several), np.zeros((ROWS, COLUMNS), np.float32))
    owners = np.zeros((ROWS, COLUMNS), int)
    for number, each in enumerate(several, 1):
        owners[each] = number
    assert run.record is not None
    found = last_writer(run.record, run.record.outputs[0], index)
    assert found is not None
    assert found.is_certain
    assert found.position == owners[index]
    everything = (slice(None), slice(None))
    wrote = [everything, *several][found.position]
    places = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    assert places[wrote][found.index] == places[index]
    assert found.shape == places[wrote].shape


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(sizes=SIZES, order=st.randoms(), gaps=st.integers(0, 2), back=st.booleans())
def test_an_index_is_found_from_its_byte(sizes: list[int], order: Any, gaps: int, back: bool) -> None:
    """Of transposed views, those with gaps and those that run backwards: NumPy's strides say where elements lie."""
    array = np.zeros([size + gaps for size in sizes], np.float32)[tuple(slice(0, size) for size in sizes)]
    axes = list(range(len(sizes)))
    order.shuffle(axes)
    array = array.transpose(axes)
    if back:
        array = array[::-1]
    layout = layout_of(array.shape, array.strides, as_dtype("float32"), MemoryRegion.shared_hbm, 0, 0, 1)
    seen = set()
    for index in np.ndindex(array.shape):
        byte = sum(at * stride for at, stride in zip(index, array.strides, strict=True))
        assert index_of(layout, byte) == index
        assert index_of(layout, byte + 3) == index
        seen.add(byte)
    for byte in range(min(seen) - 8, max(seen) + 12, 4):
        assert (index_of(layout, byte) is None) == (byte not in seen)


def scattered(x: Any, rows: Any) -> Any:
    """Rows of the output chosen by indices."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    index = nl.load(rows)
    chosen = out.ap(pattern=[[x.shape[1], 2], [1, x.shape[1]]], offset=0, vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=chosen, src=nl.load(x[0:2, :]))
    return out


def test_the_rows_of_a_scatter_are_known() -> None:
    """An element of a chosen row is the scatter's, with no index in it; the others are of who wrote them before."""
    run = nkitools.simulate(scattered, np.ones((8, 4), np.float32), np.array([[1], [5]], np.int32))
    assert run.record is not None
    output = run.record.outputs[0]
    found, other = last_writer(run.record, output, (5, 2)), last_writer(run.record, output, (3, 0))
    assert found is not None
    assert (found.is_certain, found.index) == (True, None)
    assert run.instructions[found.position].line == line_of(scattered, "dst=chosen")
    assert other is not None
    assert (other.is_certain, other.position, other.index) == (True, 0, (3, 0))
    last = last_writers(run.record, Columns(run.record), output)
    assert last.tolist() == [[found.position if row in (1, 5) else 0] * 4 for row in range(8)]


def predicated(x: Any, chosen: Any) -> Any:
    """A tile that a predicate of data has changed in part."""
    tile, mask = nl.load(x), nl.load(chosen)
    nisa.tensor_copy_predicated(dst=tile, src=3.0, predicate=mask)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def test_a_predicate_is_not_certain() -> None:
    """Which elements it chose is not kept: it may have been the one before."""
    run = nkitools.simulate(predicated, np.ones((8, 4), np.float32), np.ones((8, 4), np.uint32))
    assert run.record is not None
    tile = run.record.accesses(2)[0]
    found = last_writer(run.record, tile, (1, 2))
    assert found is not None
    assert (found.position, found.index, found.is_certain) == (2, (1, 2), False)


def returned(x: Any) -> Any:
    """The argument itself."""
    nl.load(x)
    return x


@pytest.mark.parametrize("is_saved", [False, True])
def test_unwritten_memory_has_no_writer(is_saved: bool) -> None:
    """An argument that is returned as it came; of a saved run alike."""
    run = nkitools.simulate(returned, np.ones((8, 4), np.float32))
    run = nkitools.Run.from_json(run.to_json()) if is_saved else run
    assert run.record is not None
    assert last_writer(run.record, run.record.outputs[0], (3, 0)) is None
