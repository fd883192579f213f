"""Tensor indirection, `tensor.indirect(index)`, against loops over the documented formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.own_indices import own_boxes
from tests.chip.models import refused
from tests.isa.issued import empty, inside, placed, tile

I32 = nl.int32


def put(values: Any, memory: str = "sbuf") -> Any:
    """A tensor that holds these values, inside a running kernel."""
    return placed(tile(np.asarray(values), memory))


def snake(offsets: Any, partitions: int, group: int, columns: int | None = None) -> np.ndarray:
    """The index that holds ``offsets`` for each group of partitions, and -1 where it holds none."""
    offsets = list(offsets)
    index = np.full((partitions, columns or -(-len(offsets) // group)), -1, np.int32)
    for i, offset in enumerate(offsets):
        for partition in range(i % group, partitions, group):
            index[partition, i // group] = offset
    return index


@st.composite
def gathers(draw: st.DrawFn) -> tuple[int, int, int, list[int]]:
    """A group, partitions, elements of a partition, and offsets that the index can hold."""
    group = draw(st.sampled_from([16, 32]))
    partitions = draw(st.sampled_from([1, 3, 16, 32, 48, 64, 128]))
    free = draw(st.integers(1, 40))
    most = 3 * group if partitions >= group else partitions
    return group, partitions, free, draw(st.lists(st.integers(0, free - 1), min_size=1, max_size=most))


def lined_up(values: Any, index: Any, count: int | None, group: int) -> ColumnTensor:
    """A view that an instruction has prepared."""
    view: ColumnTensor = put(values).indirect(put(index), count)
    view.line_up(group)
    return view


def test_missing_columns_are_named_by_their_own_indices() -> None:
    """The columns of the tensor, not the places in the gathered tile."""

    def named() -> str:
        view = lined_up(np.zeros((16, 9), np.int32), snake([5, 2, 7], 16, 16), 3, 16)
        missing = np.zeros((16, 3), np.bool_)
        missing[:, 1:] = True
        return own_boxes(view, missing).replace(f"\x00{view.storage.id}\x00", "t")

    assert inside(named) == " t[0:16, 2], t[0:16, 7]"


@given(gathers())
def test_it_gathers_the_columns_that_the_snake_names(case: Any) -> None:
    """Element i of every partition is that partition's element at index[i % G, i // G]."""
    group, partitions, free, offsets = case
    values = np.arange(partitions * free, dtype=np.int32).reshape(partitions, free)
    index = snake(offsets, partitions, group)
    got = inside(lambda: lined_up(values, index, len(offsets), group).read())
    expected = np.empty((partitions, len(offsets)), np.int32)
    for i in range(len(offsets)):
        expected[:, i] = values[:, index[i % group, i // group]]
    np.testing.assert_array_equal(got, expected)


@given(gathers())
def test_it_scatters_to_the_same_columns(case: Any) -> None:
    """All other elements stay, and of two equal offsets the later one stays."""
    group, partitions, free, offsets = case
    before = -np.arange(partitions * free, dtype=np.int32).reshape(partitions, free) - 1
    values = np.arange(partitions * len(offsets), dtype=np.int32).reshape(partitions, -1)

    def scattered() -> np.ndarray:
        view = lined_up(before, snake(offsets, partitions, group), len(offsets), group)
        view.write(values)
        return np.array(view.storage.array)

    expected = before.copy()
    for i, offset in enumerate(offsets):
        expected[:, offset] = values[:, i]
    np.testing.assert_array_equal(inside(scattered), expected)


def test_shape_and_defaults() -> None:
    """(partitions, num_elem), by default all of the index; the free dimensions of a tensor count as one."""

    def body() -> Any:
        view = put(np.arange(32 * 12, dtype=np.float32).reshape(32, 3, 4)).indirect(put(np.full((32, 2), 7, np.uint16)))
        assert (view.shape, view.ndim, view.size, view.dtype) == ((32, 64), 2, 2048, nl.float32)
        assert view.is_indirect()
        assert "offsets of" in repr(view)
        view.line_up(32)
        return view.read()

    expected = np.arange(32 * 12, dtype=np.float32).reshape(32, 12)[:, [7] * 64]
    np.testing.assert_array_equal(inside(body), expected)


def test_the_index_is_read_when_the_view_is_used() -> None:
    """Not when it is made."""

    def body() -> Any:
        index = put(np.zeros((16, 1), np.int32))
        view = put(np.arange(64, dtype=np.int32).reshape(16, 4)).indirect(index)
        nisa.memset(index, 3)
        out = placed(empty((16, 16), I32))
        nisa.tensor_copy(out, view)
        return np.array(out.array)

    expected = np.repeat(np.arange(64, dtype=np.int32).reshape(16, 4)[:, 3:], 16, axis=1)
    np.testing.assert_array_equal(inside(body, chip="trn3"), expected)


def test_written_state_goes_by_columns() -> None:
    """A gather of written columns is written whatever the others are; a scatter writes its columns alone."""

    def body() -> Any:
        tensor = placed(empty((16, 8), I32))
        first = tensor.indirect(put(snake([2, 5], 16, 16)), 2)
        first.line_up(16)
        first.write(np.ones((16, 2), np.int32))
        first.mark_written()
        both = tensor.indirect(put(snake([5, 3], 16, 16)), 2)
        both.line_up(16)
        return first.unwritten(), both.unwritten(), tensor.unwritten()

    first, both, whole = inside(body)
    assert first is None
    np.testing.assert_array_equal(both, np.tile([False, True], (16, 1)))
    np.testing.assert_array_equal(whole, np.tile([c not in (2, 5) for c in range(8)], (16, 1)))


def test_lanes_write_in_part() -> None:
    """Under a mask only its elements are written."""
    lanes = np.arange(16)[:, None] % 2 == np.arange(3) % 2

    def body() -> Any:
        view = lined_up(np.zeros((16, 4), np.int32), snake([3, 0, 1], 16, 16), 3, 16)
        view.write(np.full((16, 3), 9, np.int32), lanes)
        return np.array(view.storage.array)

    expected = np.zeros((16, 4), np.int32)
    expected[:, [3, 0, 1]] = np.where(lanes, 9, 0)
    np.testing.assert_array_equal(inside(body), expected)


X = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
OK = np.zeros((32, 2), np.int32)

MADE: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "a tensor in HBM": ("NK201", "SBUF or PSUM", lambda: put(X, "shared_hbm").indirect(put(OK))),
    "an index in HBM": ("NK201", "must lie in SBUF", lambda: put(X).indirect(put(OK, "shared_hbm"))),
    "an index of floats": ("NK301", "must be integers", lambda: put(X).indirect(put(X))),
    "an index of other partitions": ("NK109", "must be (32, K)", lambda: put(X).indirect(put(OK[:16]))),
    "an index of three dimensions": ("NK109", "must be (32, K)", lambda: put(X).indirect(put(OK[:, None]))),
    "no tensor": ("NK609", "must be a tensor", lambda: put(X).indirect(OK)),
    "too many offsets": ("NK109", "num_elem=65", lambda: put(X).indirect(put(OK), 65)),
    "no offset": ("NK109", "num_elem=0", lambda: put(X).indirect(put(OK), 0)),
    "a view with an index": ("NK609", "one dynamic index", lambda: put(X).indirect(put(OK)).indirect(put(OK))),
    "an index with an index": (
        "NK609",
        "has an index of its own",
        lambda: put(X).indirect(put(OK)[:, nisa.register_alloc(0)]),
    ),
    "every other element": ("NK607", "one behind the other", lambda: put(X)[:, ::2].indirect(put(OK))),
    "a slice of it": ("NK609", "is final", lambda: put(X).indirect(put(OK))[:, 0:2]),
    "an element of it": ("NK609", "is final", lambda: put(X).indirect(put(OK)).select(1, 0)),
    "another dtype": ("NK609", "is final", lambda: put(X).indirect(put(OK)).view(nl.int32)),
    "a print": ("NK609", "operand of instructions", lambda: nl.device_print("x", put(X).indirect(put(OK)))),
}


@pytest.mark.parametrize(("rule", "text", "body"), MADE.values(), ids=MADE)
def test_what_cannot_be_made(rule: str, text: str, body: Callable[[], Any]) -> None:
    """Refused where the view is made."""
    with refused(rule, text):
        inside(body, chip="trn3")


def partly_written() -> Any:
    """An index of which the second column was never written."""
    index = placed(empty((32, 2), I32))
    nisa.memset(index[:, 0:1], 0)
    return index


OTHER_ROWS = np.where(np.arange(32)[:, None] < 16, [[1, 2]], [[3, 2]]).astype(np.int32)

USED: dict[str, tuple[str, str, Callable[[], Any], int, int]] = {
    "a negative offset": ("NK402", "offset 1 of", lambda: put(snake([0, -3], 32, 16)), 2, 16),
    "an offset behind the end": ("NK402", "is 8, out of bounds for the 8", lambda: put(snake([7, 8], 32, 16)), 2, 16),
    "more offsets than the groups hold": ("NK402", "so that it has 32", lambda: put(OK), 33, 16),
    "an index that was not written": ("NK401", "partly unwritten", partly_written, 17, 16),
    "other offsets in another group": ("NK607", "row 16", lambda: put(OTHER_ROWS), 16, 16),
}


@pytest.mark.parametrize(("rule", "text", "index", "count", "group"), USED.values(), ids=USED)
def test_what_cannot_be_used(rule: str, text: str, index: Callable[[], Any], count: int, group: int) -> None:
    """Refused by the instruction that uses the view."""
    with refused(rule, text):
        inside(lambda: put(X).indirect(index(), count).line_up(group))


def test_what_the_index_holds_beyond_the_offsets_plays_no_part() -> None:
    """Neither values nor written state."""

    def body() -> Any:
        used = put(X).indirect(partly_written(), 16)
        used.line_up(16)
        tensor_engine = put(X).indirect(put(OTHER_ROWS), 32)
        tensor_engine.line_up(32)
        return used.read(), tensor_engine.read()

    used, tensor_engine = inside(body)
    np.testing.assert_array_equal(used, np.repeat(X[:, :1], 16, axis=1))
    np.testing.assert_array_equal(tensor_engine, X[:, [1] * 16 + [3] * 16])
