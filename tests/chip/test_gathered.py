"""Views of which each partition takes the row that its own index names, against NumPy's own indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.chip.indexed import I32, X, column, copied, put
from tests.chip.models import refused
from tests.isa.issued import empty, handed_out, inside, placed
from tests.isa.oracles import words

U32 = nl.uint32
SKIP = nisa.oob_mode.skip


# --- an index for each partition -------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.sampled_from([I32, U32, nl.int16, nl.uint8]))
def test_vector_select_gathers_rows(index: list[int], dtype: Any) -> None:
    """``A[index]``, whatever integers the index is of."""
    got = inside(lambda: copied(put(X).vector_select(0, column(index, dtype))))
    np.testing.assert_array_equal(got, X[index])


@given(st.permutations(range(6)), st.integers(1, 6))
def test_vector_select_scatters_rows(order: list[int], count: int) -> None:
    """``A[index] = values``; the other rows keep what they had."""
    index, values = order[:count], words((count, 8, 10), I32, 1)

    def body() -> Any:
        t = put(X)
        nisa.dma_copy(dst=t.vector_select(0, column(index)), src=put(values, "sbuf"))
        return np.array(t.array)

    expected = X.copy()
    expected[index] = values
    np.testing.assert_array_equal(inside(body), expected)


def test_ap_gathers_parts_of_rows() -> None:
    """The step between rows is the tensor's own, the pattern's first stride plays no part; offset shifts the rows."""
    table = words((9, 32), I32)
    index = [7, 0, 3]

    def body(first: int) -> Any:
        return copied(put(table).ap([[first, 3], [2, 5]], offset=4, vector_offset=column(index)))

    for first in (32, 1, 0):
        np.testing.assert_array_equal(inside(lambda f=first: body(f)), table[index][:, 4:14:2])
    got = inside(lambda: copied(put(table).ap([[32, 3], [1, 32]], offset=64, vector_offset=column([6, 0, 3]))))
    np.testing.assert_array_equal(got, table[[8, 2, 5]])


def test_ap_gathers_as_another_dtype() -> None:
    """Pattern and offset count elements of that dtype; rows stay the tensor's rows."""
    table = words((9, 8), I32)
    view = inside(
        lambda: copied(put(table).ap([[16, 2], [1, 4]], offset=2, vector_offset=column([5, 1]), dtype=nl.int16))
    )
    np.testing.assert_array_equal(view, table.view(np.int16)[[5, 1], 2:6])


def test_an_index_of_several_columns_goes_column_after_column() -> None:
    """``indices.T.flatten()`` (dma_transpose docstring)."""
    index = np.array([[5, 0], [1, 2], [3, 3]], np.int32)

    def body() -> Any:
        return np.array(put(X).ap([[80, 5], [1, 80]], vector_offset=put(index, "sbuf")).read())

    np.testing.assert_array_equal(inside(body), X.reshape(6, 80)[[5, 1, 3, 0, 2]])


VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "slice": (lambda v: v[:, 2:5], lambda x: x[:, 2:5]),
    "full slice of the rows": (lambda v: v[0 : v.shape[0], :, 3], lambda x: x[:, :, 3]),
    "permute": (lambda v: v.permute((0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "flatten_dims": (lambda v: v.flatten_dims(1, 2), lambda x: x.reshape(len(x), 80)),
    "reshape": (lambda v: v.reshape((v.shape[0], 4, 20)), lambda x: x.reshape(len(x), 4, 20)),
    "expand_dim": (lambda v: v.expand_dim(1), lambda x: x[:, None]),
    "select": (lambda v: v.select(2, 9), lambda x: x[:, :, 9]),
    "several": (lambda v: v[:, 1:7:2].permute((0, 2, 1))[:, 4:6], lambda x: x[:, 1:7:2].transpose(0, 2, 1)[:, 4:6]),
}


@pytest.mark.parametrize("index", [[3, 1, 3, 0], [4]], ids=["rows", "one row"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_gathered_rows(name: str, index: list[int]) -> None:
    """Everything that leaves the rows alone, for gathers and for scatters."""
    view, oracle = VIEWS[name]
    np.testing.assert_array_equal(
        inside(lambda: copied(view(put(X).vector_select(0, column(index))))), oracle(X[index])
    )
    unique = sorted(set(index))
    expected = X.copy()
    rows = X[unique]
    values = words(oracle(rows).shape, I32, 2)
    oracle(rows)[...] = values
    expected[unique] = rows

    def body() -> Any:
        t = put(X)
        nisa.dma_copy(dst=view(t.vector_select(0, column(unique))), src=put(values))
        return np.array(t.array)

    np.testing.assert_array_equal(inside(body), expected)


def test_an_index_may_be_overwritten_by_what_it_gathers() -> None:
    """It is read before anything is written: a step along a linked list."""

    def body() -> Any:
        index = column([2, 0, 1])
        table = put(np.array([[1], [2], [0]], np.int32))
        nisa.dma_copy(dst=index, src=table.vector_select(0, index))
        return np.array(index.array)

    np.testing.assert_array_equal(inside(body)[:, 0], [0, 1, 2])


# --- out of bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_rows_out_of_bounds(dtype: Any) -> None:
    """NK402 names where the index stands; with oob_mode.skip those rows are left out, also -1 as uint32."""
    index, valid = np.array([5, -1, 2, 6]), [0, 2]

    def gather(**kwargs: Any) -> Any:
        out = put(np.full((4, 8, 10), 7, np.int32), "sbuf")
        nisa.dma_copy(dst=out, src=put(X).vector_select(0, column(index, dtype)), **kwargs)
        return np.array(out.array)

    def scatter(**kwargs: Any) -> Any:
        t = put(X)
        nisa.dma_copy(dst=t.vector_select(0, column(index, dtype)), src=put(words((4, 8, 10), I32, 1)), **kwargs)
        return np.array(t.array)

    shown = int(index.astype(dtype.dtype)[1])
    for move in (gather, scatter):
        with refused("NK402", f"is {shown}, out of bounds for the 6 rows"):
            inside(move)
    gathered = np.full((4, 8, 10), 7)
    gathered[valid] = X[[5, 2]]
    np.testing.assert_array_equal(inside(lambda: gather(oob_mode=SKIP)), gathered)
    # Collected, the others are undefined: no result can be computed from what lies out of bounds.
    np.testing.assert_array_equal(inside(gather, rules="report")[valid], gathered[valid])
    scattered = X.copy()
    scattered[[5, 2]] = words((4, 8, 10), I32, 1)[valid]
    np.testing.assert_array_equal(inside(lambda: scatter(oob_mode=SKIP)), scattered)


def test_skipped_rows_of_a_gather_and_a_scatter_in_one() -> None:
    """From table to table: a row moves where both of its indices are in bounds."""

    def body() -> Any:
        t = put(np.zeros((5, 3), np.int32))
        source = put(np.arange(12, dtype=np.int32).reshape(4, 3)).vector_select(0, column([3, 9, 1]))
        nisa.dma_copy(dst=t.vector_select(0, column([0, 1, 7])), src=source, oob_mode=SKIP)
        return np.array(t.array)

    expected = np.zeros((5, 3))
    expected[0] = [9, 10, 11]
    np.testing.assert_array_equal(inside(body), expected)


# --- what has been written -------------------------------------------------------------------------------------------


def test_rows_that_were_never_written_are_found_where_they_are_chosen() -> None:
    """And only there; a scatter marks the rows that it names."""

    def body(read: list[int], skip: int = 0) -> Any:
        t = placed(empty((8, 4), I32, "shared_hbm"))
        nisa.dma_copy(
            dst=t.vector_select(0, column([6, 1, 3 + skip])), src=put(np.ones((3, 4), np.int32)), oob_mode=SKIP
        )
        return copied(t.vector_select(0, column(read)))

    assert inside(lambda: body([1, 1, 6, 3])).all()
    with refused("NK401", "4 of 8 elements of tensor"):
        inside(lambda: body([1, 2]))
    with refused("NK401", "4 of 4 elements"):
        inside(lambda: body([3], skip=100))


def test_what_a_gather_skips_stays_unwritten() -> None:
    """The destination's other rows are written."""

    def body(rows: slice) -> Any:
        dst = placed(empty((3, 4), I32))
        nisa.dma_copy(dst=dst, src=put(words((5, 4), I32)).vector_select(0, column([0, 9, 4])), oob_mode=SKIP)
        return handed_out(dst[rows])

    nkitools.simulate(lambda: body(slice(0, 1)))
    with refused("NK401"):
        nkitools.simulate(lambda: body(slice(1, 2)))
