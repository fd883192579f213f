"""Who made what an instruction reads: compared with arrays in which every element knows its last writer."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.dependences import dependences
from tests.record.test_last_writer import scattered

COLUMNS = 8

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["sbuf", "hbm", "load", "store"]),
        st.sampled_from([(0, 32), (32, 32), (0, 64), (64, 64), (0, 128)]),
        st.integers(0, COLUMNS - 1),
        st.integers(1, COLUMNS),
        st.sampled_from([1, 1, 2]),
    ),
    max_size=10,
)


def slices_of(step: Any) -> tuple[slice, slice]:
    _, (row, height), column, width, stride = step
    return slice(row, row + height), slice(column, min(COLUMNS, column + width), stride)


def copying(steps: list[Any]) -> Any:
    """A kernel that copies slices within and between a tile and an output, each after it was filled."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, dtype=x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=out, src=tile)
        for step in steps:
            part = slices_of(step)
            dst, src = {"sbuf": (tile, tile), "hbm": (out, out), "load": (tile, out), "store": (out, tile)}[step[0]]
            nisa.dma_copy(dst=dst[part], src=src[part])
        return out

    return kernel


def by_element(steps: list[Any]) -> list[set[int]]:
    """The dependences as the elements tell them."""
    tile, out = np.full((128, COLUMNS), 0), np.full((128, COLUMNS), 1)
    found: list[set[int]] = [set(), {0}]
    for position, step in enumerate(steps, 2):
        dst, src = {"sbuf": (tile, tile), "hbm": (out, out), "load": (tile, out), "store": (out, tile)}[step[0]]
        found.append(set(src[slices_of(step)].ravel().tolist()))
        dst[slices_of(step)] = position
    return found


@given(steps=STEPS)
def test_a_reader_depends_on_the_last_writers_of_its_elements(steps: list[Any]) -> None:
    """Exactly these where the views have no gaps; with gaps at least these, and nobody who came later."""
    record = nkitools.simulate(copying(steps), np.zeros((128, COLUMNS), np.float32)).record
    assert record is not None
    found, expected = list(dependences(record)), by_element(steps)
    assert len(found) == len(expected)
    if all(step[-1] == 1 for step in steps):
        assert found == expected
    for position, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        assert theirs <= mine
        assert all(0 <= each < position for each in mine)


def summed(x: Any, y: Any) -> Any:
    """Two matmuls that add up in PSUM, read by a copy."""
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(x), nl.load(y)
    total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=total, stationary=left, moving=right)
    nisa.nc_matmul(dst=total, stationary=right, moving=left)
    tile = nl.ndarray((128, 128), dtype=nl.float32)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_what_adds_up_depends_on_what_was_there() -> None:
    """The second matmul on the first; the copy on the second, which is the last writer."""
    x = np.ones((128, 128), np.float32)
    record = nkitools.simulate(summed, x, x).record
    assert record is not None
    assert list(dependences(record)) == [set(), set(), {0, 1}, {0, 1, 2}, {3}, {4}]


def test_chosen_rows_may_be_any() -> None:
    """A scatter's rows are not known: who reads the output afterwards depends on both writers."""

    def kernel(x: Any, rows: Any) -> Any:
        out = scattered(x, rows)
        nl.load(out[3:4, :])
        return out

    run = nkitools.simulate(kernel, np.ones((8, 4), np.float32), np.array([[1], [5]], np.int32))
    assert run.record is not None
    names = [each.name for each in run.instructions]
    assert names == ["dma_copy"] * 5
    found = list(dependences(run.record))
    assert found[3] == {2}  # the record has no operand for the indices
    assert found[4] == {0, 3}
