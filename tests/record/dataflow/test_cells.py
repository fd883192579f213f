"""Cells of views, compared with bytes that NumPy marks one view at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import layout_of
from nkitools.chip.memory_region import MemoryRegion
from nkitools.record.beside_rows import BesideRows
from nkitools.record.dataflow.cells import cells_of, touched_elements
from nkitools.record.dataflow.elements import ONE_ROW, pitches_of
from nkitools.record.dataflow.pieces import View

ROWS, COLUMNS, ITEMSIZE = 4, 6, 4


@st.composite
def sliced(draw: Any) -> tuple[View, Any]:
    """A view of a tensor of 4 x 6 int32, often masked or of half elements, and the bytes that NumPy finds for it."""
    dtype = draw(st.sampled_from(["int32", "int16"]))
    width = COLUMNS * ITEMSIZE // as_dtype(dtype).itemsize
    cuts = []
    for size in (ROWS, width):
        first = draw(st.integers(0, size - 1))
        cuts.append(slice(first, draw(st.integers(first + 1, size)), draw(st.integers(1, 3))))
    marked = np.zeros(ROWS * COLUMNS * ITEMSIZE, np.uint8)
    array: Any = marked.view(dtype).reshape(ROWS, width)
    view = array[cuts[0], cuts[1]]
    layout = layout_of(view.shape, view.strides, as_dtype(dtype), MemoryRegion.shared_hbm, 0, 0, 1)
    byte = view.__array_interface__["data"][0] - marked.__array_interface__["data"][0]
    lanes = np.array(draw(st.lists(st.booleans(), min_size=view.size, max_size=view.size))).reshape(view.shape)
    is_masked = draw(st.booleans()) and bool(lanes.any())
    view[lanes if is_masked else ...] = -1
    return View(layout, byte, BesideRows().lanes(layout, lanes) if is_masked else None), marked != 0


@given(st.lists(sliced(), min_size=1, max_size=5), st.booleans())
def test_cells_are_the_bytes_that_views_touch(drawn: list[Any], as_one_row: bool) -> None:
    """Each byte is in the cells of exactly the views that touch it, in ascending order of first bytes."""
    pitches = [ONE_ROW] if as_one_row else [*pitches_of((ROWS, COLUMNS), ITEMSIZE), ONE_ROW]
    cells = cells_of([view for view, _ in drawn], pitches)
    for view, marked in drawn:
        mine = np.unique(cells.by_view[view])
        np.testing.assert_array_equal(cells.elements(mine, marked.size, 1), marked)
        firsts = [cells.first_byte(cell) for cell in mine.tolist()]
        assert firsts == sorted(firsts)
        assert firsts[0] == np.flatnonzero(marked)[0]
        for other, others in drawn:
            both = np.intersect1d(mine, cells.by_view[other])
            np.testing.assert_array_equal(cells.elements(both, marked.size, 1), marked & others)
            wide = (marked & others).reshape(-1, ITEMSIZE).any(axis=1)
            np.testing.assert_array_equal(cells.elements(both, wide.size, ITEMSIZE), wide)


@given(sliced())
def test_elements_of_which_bytes_are_touched(drawn: tuple[View, Any]) -> None:
    """An element counts when any of its bytes is touched."""
    view, marked = drawn
    expected = marked.reshape(-1, ITEMSIZE).any(axis=1)
    np.testing.assert_array_equal(touched_elements(view, ROWS * COLUMNS, ITEMSIZE), expected)
