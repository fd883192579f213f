"""Views whose address is decided while the kernel runs, against NumPy's own indexing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.tensor import NkiTensor, RuntimeViews
from nkitools.rules.finding import NotModelled
from tests.chip.indexed import I32, X, column, copied, put, scalar
from tests.chip.models import refused
from tests.isa.issued import empty, handed_out, inside, placed
from tests.isa.oracles import words

SKIP = nisa.oob_mode.skip
INDEX: dict[str, Callable[[int], Any]] = {"register": nisa.register_alloc, "tensor": scalar}
INDICES = pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)


# --- one index -------------------------------------------------------------------------------------------------------


@INDICES
@pytest.mark.parametrize(("memory", "dim"), [("shared_hbm", 0), ("shared_hbm", 1), ("private_hbm", -1), ("sbuf", 1)])
def test_select_takes_one_element_of_a_dimension(memory: str, dim: int, index: Any) -> None:
    """As ``take`` does, for every index; the dimension is gone."""
    size = X.shape[dim]
    for number in (0, size // 2, size - 1):
        expected = np.take(X, number, axis=dim)
        got = inside(lambda n=number: copied(put(X, memory).select(dim, index(n))))
        np.testing.assert_array_equal(got, expected)


@INDICES
def test_select_may_be_written_to(index: Any) -> None:
    """Only the selected elements change."""

    def body() -> Any:
        t = put(X)
        nisa.dma_copy(dst=t.select(1, index(3)), src=put(np.zeros((6, 10), np.int32)))
        return np.array(t.array)

    expected = X.copy()
    expected[:, 3] = 0
    np.testing.assert_array_equal(inside(body), expected)


def test_a_select_of_psum_feeds_an_engine() -> None:
    """Dynamic addresses are not the DMA's alone."""

    def body() -> Any:
        dst = placed(empty((6, 10)))
        nisa.tensor_copy(dst=dst, src=put(X.astype(np.float32), "psum").select(1, nisa.register_alloc(7)))
        return dst.array

    np.testing.assert_array_equal(inside(body), X[:, 7].astype(np.float32))


KEYS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "index": (lambda t, r: t[r], X[2]),
    "inner index": (lambda t, r: t[:, r], X[:, 2]),
    "last index": (lambda t, r: t[..., r], X[..., 2]),
    "ds": (lambda t, r: t[nl.ds(r, 3)], X[2:5]),
    "inner ds": (lambda t, r: t[:, nl.ds(r, 4), 1:7:2], X[:, 2:6, 1:7:2]),
    "two of them": (lambda t, r: t[r, nl.ds(r, 2)], X[2, 2:4]),
    "beside an integer": (lambda t, r: t[r, 5], X[2, 5]),
    "arithmetic": (lambda t, r: t[r * 2 + 1 - r], X[3]),
    "views of it": (lambda t, r: t[r].permute((1, 0))[2:4].expand_dim(1), X[2].T[2:4, None]),
}


@pytest.mark.parametrize("name", KEYS)
def test_registers_index(name: str) -> None:
    """As integers and as starts of nl.ds."""
    make, expected = KEYS[name]
    np.testing.assert_array_equal(inside(lambda: copied(make(put(X), nisa.register_alloc(2)))), expected)


def test_on_chip_a_register_starts_a_slice_of_partitions() -> None:
    """``sb[nl.ds(i, 8), :]`` (__getitem__ docstring); a single one would be a dynamic select of dimension 0."""
    x = words((64, 4), I32)
    got = inside(lambda: copied(put(x, "sbuf")[nl.ds(nisa.register_alloc(32), 8), :]))
    np.testing.assert_array_equal(got, x[32:40])
    with refused("NK109", "partition dimension"):
        inside(lambda: put(x, "sbuf")[nisa.register_alloc(3)])


@given(st.data())
def test_ap_begins_scalar_offset_steps_of_a_dimension_further_on(data: st.DataObject) -> None:
    """``offset + scalar_offset * prod(A.shape[indirect_dim+1:])`` (nki-aps), in bounds or NK402."""
    memory = data.draw(st.sampled_from(["shared_hbm", "sbuf"]))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=3)))
    dim = data.draw(st.integers(1 if memory == "sbuf" else 0, len(shape) - 1))
    index, offset = data.draw(st.integers(-1, 6)), data.draw(st.integers(0, 6))
    free = int(np.prod(shape[1:]))
    inner = data.draw(st.integers(1, free))
    rows = data.draw(st.integers(1, shape[0]))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    start = offset + index * int(np.prod(shape[dim + 1 :], dtype=int))
    places = start + free * np.arange(rows)[:, None] + np.arange(inner)
    fits = 0 <= index < shape[dim] and places.max() < x.size
    if memory == "sbuf":
        fits = fits and start % free + inner <= free and start // free == offset // free

    def body() -> Any:
        view = put(x, memory).ap(
            [[free, rows], [1, inner]], offset, scalar_offset=nisa.register_alloc(index), indirect_dim=dim
        )
        return copied(view)

    if fits:
        np.testing.assert_array_equal(inside(body), places)
    else:
        with refused("NK402"):
            inside(body)


def test_ap_of_a_strided_view_and_as_a_destination() -> None:
    """The stride is that of the dimension of the tensor that ap is called on; the shape is the pattern's."""

    def body() -> Any:
        t = put(np.zeros((8, 6), np.int32))
        every_other = t[::2]
        nisa.dma_copy(dst=every_other.ap([[1, 6]], scalar_offset=scalar(3)), src=put(np.arange(6, dtype=np.int32)))
        return np.array(t.array)

    expected = np.zeros((8, 6), np.int32)
    expected[6] = np.arange(6)
    np.testing.assert_array_equal(inside(body), expected)


@INDICES
def test_the_index_is_read_when_the_view_is_used(index: Any) -> None:
    """Not when it is made: one view reads different rows as its index changes."""

    def body() -> Any:
        x, source = put(X), index(1)
        view = x.select(0, source)
        found = [copied(view)]
        for number in (4, 0):
            if isinstance(source, NkiTensor):
                nisa.memset(source, number)
            else:
                nisa.register_move(source, number)
            found.append(copied(view))
        return found

    np.testing.assert_array_equal(inside(body), X[[1, 4, 0]])


@INDICES
def test_a_view_of_a_used_view_moves_once(index: Any) -> None:
    """What is made of a dynamic view does not begin where an instruction has left that."""

    def body() -> Any:
        view = put(X).select(0, index(2))
        copied(view)
        part = view[1:3]
        assert part.is_indirect()
        return [copied(part), copied(view[1:3]), copied(part)]

    np.testing.assert_array_equal(inside(body), [X[2, 1:3]] * 3)


def test_a_device_print_shows_what_is_addressed_now() -> None:
    """Of both kinds; out of bounds it is refused."""

    def body() -> None:
        register = nisa.register_alloc(1)
        view = put(X).select(0, register)
        nisa.register_move(register, 5)
        nl.device_print("scalar", view)
        nl.device_print("vector", put(X).vector_select(0, column([4, 4, 0])))

    prints = nkitools.simulate(body).prints
    np.testing.assert_array_equal(prints[0].value, X[5])
    np.testing.assert_array_equal(prints[1].value, X[[4, 4, 0]])
    for view in (lambda: put(X).select(0, scalar(6)), lambda: put(X).vector_select(0, column([6]))):
        with refused("NK402", "nl.device_print"):
            inside(lambda v=view: nl.device_print("x", v()))


# --- out of bounds ---------------------------------------------------------------------------------------------------


@INDICES
@pytest.mark.parametrize("number", [-1, 6, 1000])
def test_one_index_out_of_bounds(number: int, index: Any) -> None:
    """NK402 names the index and its range; with oob_mode.skip nothing at all is moved, from or to."""
    with refused("NK402", f"index {number} of tensor") as _:
        inside(lambda: copied(put(X).select(0, index(number))))

    def body() -> Any:
        t, other = put(X), put(np.zeros((8, 10), np.int32))
        nisa.dma_copy(dst=other, src=t.select(0, index(number)), oob_mode=SKIP)
        nisa.dma_copy(dst=t.select(0, index(number)), src=other, oob_mode=SKIP)
        return np.array(t.array), np.array(other.array)

    kept, untouched = inside(body)
    np.testing.assert_array_equal(kept, X)
    assert not untouched.any()


def test_an_instruction_without_oob_mode_does_not_skip() -> None:
    """An index that is out of bounds ends the run at every level of the rules."""

    def body() -> None:
        dst = placed(empty((6, 10), I32))
        nisa.tensor_copy(dst=dst, src=put(X, "sbuf").select(1, nisa.register_alloc(8)))

    assert [each.rule for each in nkitools.simulate(body, rules="report").findings] == ["NK402"]
    with refused("NK402", "tensor_copy: index 8"):
        inside(body)


# --- what has been written -------------------------------------------------------------------------------------------


def test_an_index_that_was_never_written_is_found() -> None:
    """Of all three kinds (NK401)."""
    for view in (
        lambda t: t.select(0, placed(empty((1, 1), I32))),
        lambda t: t.select(0, nisa.register_alloc()),
        lambda t: t.vector_select(0, placed(empty((3, 1), I32))),
    ):
        with refused("NK401"):
            nkitools.simulate(lambda v=view: handed_out(v(put(X))))


# --- what is refused -------------------------------------------------------------------------------------------------


def table() -> Any:
    """An HBM tensor."""
    return put(X)


REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "select along the partitions": ("NK109", lambda: put(X, "sbuf").select(0, scalar(1))),
    "select by a float": ("NK301", lambda: table().select(0, put(np.ones((1, 1), np.float32), "sbuf"))),
    "select by two": ("NK609", lambda: table().select(0, column([1, 2]))),
    "select by an index in HBM": ("NK201", lambda: table().select(0, put(np.ones((1, 1), np.int32)))),
    "select by an index in PSUM": ("NK201", lambda: table().select(0, put(np.ones((1, 1), np.int32), "psum"))),
    "select twice": ("NK609", lambda: table().select(0, scalar(1)).select(0, scalar(1))),
    "select of gathered rows": ("NK609", lambda: table().vector_select(0, column([1])).select(1, scalar(1))),
    "an indexed index": ("NK609", lambda: table().select(0, column([1, 2])[nl.ds(nisa.register_alloc(1), 1)])),
    "gather twice": ("NK609", lambda: table().vector_select(0, column([1])).vector_select(0, column([0]))),
    "gather of a selection": ("NK609", lambda: table().select(0, scalar(1)).vector_select(0, column([0]))),
    "gather by an indexed index": (
        "NK609",
        lambda: table().vector_select(0, put(np.ones((4, 3), np.int32), "sbuf").select(1, nisa.register_alloc(0))),
    ),
    "gather along dimension 1": ("NK609", lambda: table().vector_select(1, column([1]))),
    "gather on chip": ("NK201", lambda: put(X, "sbuf").vector_select(0, column([1]))),
    "gather on chip by ap": ("NK201", lambda: put(X, "sbuf").ap([[80, 1], [1, 8]], vector_offset=column([1]))),
    "gather by a register": ("NK609", lambda: table().vector_select(0, nisa.register_alloc(1))),
    "gather by an index in HBM": ("NK201", lambda: table().vector_select(0, put(np.ones((2, 1), np.int32)))),
    "gather by floats": ("NK301", lambda: table().vector_select(0, put(np.ones((2, 1), np.float32), "sbuf"))),
    "gather by too few": ("NK109", lambda: table().ap([[80, 3], [1, 8]], vector_offset=column([1, 2]))),
    "gather by ap along dimension 1": (
        "NK609",
        lambda: table().ap([[80, 1], [1, 8]], vector_offset=column([1]), indirect_dim=1),
    ),
    "both offsets": (
        "NK609",
        lambda: table().ap([[80, 1], [1, 8]], scalar_offset=scalar(1), vector_offset=column([1])),
    ),
    "no row fits": ("NK402", lambda: table().ap([[80, 1], [1, 8]], offset=480, vector_offset=column([0]))),
    "scalar_offset along the partitions": (
        "NK609",
        lambda: put(X, "sbuf").ap([[80, 1], [1, 8]], scalar_offset=scalar(1)),
    ),
    "scalar_offset by a number": ("NK609", lambda: table().ap([[80, 1], [1, 8]], scalar_offset=1)),
    "ap with an index of an indirect view": (
        "NK609",
        lambda: table().select(0, scalar(1)).ap([[1, 8]], scalar_offset=scalar(1)),
    ),
    "ap of an indirect view": ("NK607", lambda: table().select(0, scalar(1)).ap([[1, 8]])),
    "reinterpreted selection": ("NK609", lambda: table().select(0, scalar(1)).view(nl.float32)),
    "reinterpreted as narrower": ("NK609", lambda: table().select(0, scalar(1)).view(nl.int16)),
    "reinterpreted rows": ("NK609", lambda: table().vector_select(0, column([1, 2])).view(nl.float32)),
    "sliced rows": ("NK609", lambda: table().vector_select(0, column([1, 2]))[0:1]),
    "selected row": ("NK609", lambda: table().vector_select(0, column([1, 2])).select(0, 1)),
    "rows moved inside": ("NK609", lambda: table().vector_select(0, column([1, 2])).permute((1, 0, 2))),
    "a dimension before the rows": ("NK609", lambda: table().vector_select(0, column([1, 2])).expand_dim(0)),
    "rows flattened": ("NK109", lambda: table().vector_select(0, column([1, 2])).flatten_dims(0, 1)),
    "a float register": ("NK301", lambda: copied(table()[loaded(put(np.ones((1, 1), np.float32)))])),
    "a register as a bound": ("NK603", lambda: table()[nisa.register_alloc(0) : 2]),
    "a register as the size of ds": ("NK609", lambda: table()[nl.ds(nisa.register_alloc(0), nisa.register_alloc(1))]),
}


def loaded(tensor: Any) -> Any:
    """A register with the value of a tensor."""
    register = nisa.register_alloc()
    nisa.register_load(register, tensor)
    return register


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_documents_do_not_allow_is_refused(name: str) -> None:
    """Constraints of select, vector_select, ap and view (NkiTensor's docstrings), and of the access pattern guide."""
    rule, make = REFUSED[name]
    with refused(rule):
        inside(make)
    if rule == "NK607":
        with pytest.raises(NotModelled):
            inside(make)


@pytest.mark.process
@pytest.mark.parametrize(
    "module", ["nkitools.launch.arguments", "nkitools.issue.instruction", "nkitools.language.creation"]
)
def test_rooms_that_make_tensors_offer_every_view(module: str) -> None:
    """The functions that NkiTensor calls for such views are there as soon as a room that makes tensors is imported."""
    code = f"import {module}; from nkitools.chip.tensor import RUNTIME_VIEWS; print(*vars(RUNTIME_VIEWS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(get_type_hints(RuntimeViews, vars(sys.modules[NkiTensor.__module__])))


@pytest.mark.process
def test_a_kernel_without_isa_and_language_assigns() -> None:
    """The function behind ``tensor[...] = tile`` is set as soon as ``nki`` is imported."""
    code = "import nkitools.dialects.modern; from nkitools.chip.tensor import ASSIGNMENTS; print(*vars(ASSIGNMENTS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["issue"]
