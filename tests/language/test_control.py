"""nl.dynamic_range, fori_loop, while_loop and no_reorder: loops on the device."""

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
from tests.chip.models import refused
from tests.isa.issued import empty, inside, placed, tile
from tests.nki_versions import SINCE_0_7, WITH_REMOVED_NAMES

pytestmark = WITH_REMOVED_NAMES

BOUNDS = st.integers(-6, 6)


def bound(value: int, as_register: bool) -> Any:
    """A bound of a loop."""
    return nisa.register_alloc(value) if as_register else value


@given(BOUNDS, BOUNDS, st.integers(1, 4), st.booleans(), st.booleans())
def test_dynamic_range_counts_as_range_does(start: int, stop: int, step: int, first: bool, last: bool) -> None:
    """With integers and registers as bounds."""

    def body() -> Any:
        counters = nl.dynamic_range(bound(start, first), bound(stop, last), step)
        return [counter.value for counter in counters]

    assert inside(body) == list(range(start, stop, step))


def test_one_bound_is_the_stop() -> None:
    """As in Python."""
    assert inside(lambda: [each.value for each in nl.dynamic_range(3)]) == [0, 1, 2]
    assert inside(lambda: [each.value for each in nl.dynamic_range(nisa.register_alloc(2))]) == [0, 1]


@given(BOUNDS, BOUNDS, st.integers(1, 4), st.booleans())
def test_fori_loop_counts_as_range_does(start: int, stop: int, step: int, register: bool) -> None:
    """The body gets each value in a register of its own."""

    def body() -> Any:
        seen: list[Any] = []
        nl.fori_loop(bound(start, register), bound(stop, register), lambda i: seen.append(i.value), step)
        return seen

    assert inside(body) == list(range(start, stop, step))


def computed(value: int) -> Any:
    """A scalar, loaded from a tensor."""
    return nisa.scalar_load(placed(tile(np.array([[value]], np.int32))))


MAKING: dict[str, Callable[[int], Any]] = {"int": int, "register": nisa.register_alloc, "scalar": computed}


@SINCE_0_7
@pytest.mark.parametrize("last", MAKING)
@pytest.mark.parametrize("first", MAKING)
@given(start=BOUNDS, stop=BOUNDS, step=st.integers(1, 4))
def test_bounds_decide_what_the_counter_is(first: str, last: str, start: int, stop: int, step: int) -> None:
    """A register where a bound is one, else a scalar of 32 bits; its values are those of Python's range."""
    kind = nisa.VirtualRegister if "register" in (first, last) else nisa.NkiScalar

    def body() -> Any:
        seen: list[Any] = []
        nl.fori_loop(MAKING[first](start), MAKING[last](stop), seen.append, step)
        assert {type(each) for each in seen} <= {kind}
        assert kind is nisa.VirtualRegister or {each.dtype for each in seen} <= {nl.int32}
        return [each.value for each in seen]

    assert inside(body) == list(range(start, stop, step))


@pytest.mark.parametrize("setting", ["0.6", "custom"])
def test_counters_were_registers(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before NKI 0.7, and where the former front end specializes the kernel, also with integers as bounds."""
    if setting == "custom":
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "custom")

    def kernel() -> None:
        nl.fori_loop(0, 2, lambda i: seen.append(type(i)))

    seen: list[type] = []
    nkitools.simulate(kernel, nki_version="0.6" if setting == "0.6" else "0.7", rules="report")
    assert seen == [nisa.VirtualRegister] * 2


@SINCE_0_7
def test_an_expression_of_scalars_is_a_bound() -> None:
    """A loop from 2 * n - 3 to n + n in a kernel fills what NumPy fills."""

    def kernel(count: Any) -> Any:
        out = nl.zeros((16, 1), nl.float32, nl.shared_hbm)
        one = nl.ones((1, 1), nl.float32, nl.sbuf)
        n = nisa.scalar_load(count)

        def mark(i: Any) -> None:
            nisa.dma_copy(dst=out[nl.ds(1 + 1 * i, 1)], src=one)

        nl.fori_loop(2 * n - 3, n + n, mark)
        return out

    for value in (2, 5, 7):
        expected = np.zeros((16, 1), np.float32)
        expected[2 * value - 2 : 2 * value + 1] = 1
        np.testing.assert_array_equal(nkitools.simulate(kernel, np.array([[value]], np.int32)).outputs, expected)


@SINCE_0_7
def test_a_while_loop_with_a_scalar_runs_with_a_hint() -> None:
    """No document has a scalar as condition: it works as a register does, and NK621 says so once."""

    def kernel(count: Any) -> Any:
        out = nl.ndarray((1, 1), nl.int32, nl.shared_hbm)

        def turn(left: Any) -> Any:
            assert isinstance(left, nisa.NkiScalar)
            nisa.scalar_store(out, left * 10)
            return left - 1

        nl.while_loop(nisa.scalar_load(count), turn)
        return out

    run = nkitools.simulate(kernel, np.array([[3]], np.int32))
    assert run.outputs.tolist() == [[10]]
    assert [each.name for each in run.instructions] == ["scalar_load", *["scalar_store"] * 3]
    assert [(each.rule, each.severity) for each in run.findings] == [("NK621", "hint")]


@SINCE_0_7
def test_a_bound_beyond_32_bits_is_refused_at_once() -> None:
    """NK609, before the first turn."""
    with refused("NK609", "bound 2147483648 does not fit into the 32 bits"):
        inside(lambda: nl.fori_loop(0, 2**31, lambda i: None))


def test_the_bounds_are_read_when_the_loop_begins() -> None:
    """Moving into the register inside of the loop does not change how often it runs."""

    def body() -> Any:
        stop, turns = nisa.register_alloc(3), 0
        for _ in nl.dynamic_range(0, stop):
            nisa.register_move(stop, 100)
            turns += 1
        return turns

    assert inside(body) == 3


def test_the_counter_of_dynamic_range_is_frozen_and_that_of_fori_loop_a_copy() -> None:
    """Writing the one is refused (NK601), writing the other has no effect on the loop."""

    def frozen() -> None:
        for i in nl.dynamic_range(2):
            nisa.register_move(i, 5)

    def loaded() -> None:
        for i in nl.dynamic_range(2):
            nisa.register_load(i, placed(tile(np.ones((1, 1), np.int32))))

    def copied() -> Any:
        seen: list[Any] = []

        def each(i: Any) -> None:
            seen.append(i.value)
            nisa.register_move(i, 100)

        nl.fori_loop(0, nisa.register_alloc(3), each)
        return seen

    for body, name in ((frozen, "register_move"), (loaded, "register_load")):
        with refused("NK601", f"nisa.{name} writes the counter of a dynamic loop"):
            inside(body)
    assert inside(copied) == [0, 1, 2]


def test_counters_address_tiles() -> None:
    """As an index, as the start of nl.ds, in arithmetic and as a scalar_offset: a blocked copy."""
    x = np.arange(8 * 6, dtype=np.float32).reshape(8, 6)

    def kernel(source: Any) -> Any:
        out = nl.ndarray((8, 6), nl.float32, nl.shared_hbm)
        for i in nl.dynamic_range(0, 4, 2):
            nisa.dma_copy(dst=out[nl.ds(i, 2)], src=source[nl.ds(i, 2)])
        nisa.dma_copy(dst=out[nisa.register_alloc(4)], src=source.select(0, nisa.register_alloc(4)))
        for i in nl.dynamic_range(2):
            nisa.dma_copy(dst=out[i + 5], src=source.ap([[1, 6]], scalar_offset=i + 5))
        nl.fori_loop(7, 8, lambda i: nisa.dma_copy(dst=out[i], src=source[i]))
        return out

    run = nkitools.simulate(kernel, x)
    np.testing.assert_array_equal(run.outputs, x)
    assert len(run.instructions) == 6


def test_while_loop_runs_until_the_returned_register_is_zero() -> None:
    """It looks before each turn, and the register that the body gets is a copy."""

    def body() -> Any:
        seen: list[Any] = []

        def turn(r: Any) -> Any:
            seen.append(r.value)
            nisa.register_move(r, r - 1)
            return r

        start = nisa.register_alloc(3)
        nl.while_loop(start, turn)
        nl.while_loop(nisa.register_alloc(0), turn)
        return seen, start.value

    assert inside(body) == ([3, 2, 1], 3)


def test_a_register_is_a_condition_of_python_s_while() -> None:
    """``while register:`` asks anew in each turn, after a load from a tensor that an engine computed."""

    def body() -> Any:
        left, one = placed(tile(np.full((1, 1), 4, np.int32))), placed(tile(np.ones((1, 1), np.int32)))
        register = nisa.register_alloc(left)
        turns = 0
        while register:
            nisa.tensor_tensor(left, left, one, nl.subtract)
            nisa.register_load(register, left)
            turns += 1
        return turns

    assert inside(body) == 4


def test_the_record_knows_the_iteration() -> None:
    """By the name of the counter, nested, and no longer after the loop: also where it is left early."""

    def kernel() -> None:
        cell = nl.ndarray((1, 1), nl.float32, nl.sbuf)
        for row in nl.dynamic_range(2):
            for _ in nl.dynamic_range(5, 9):
                nisa.memset(cell, 0)
                break
            nisa.register_store(cell, row)
        nl.fori_loop(3, 4, lambda i: nisa.memset(cell, 0))
        nisa.memset(cell, 0)

    loops = [each.loops for each in nkitools.simulate(kernel).instructions]
    assert [list(each.values()) for each in loops] == [[0, 5], [0], [1, 5], [1], [3], []]
    assert all(each.get("row") == number // 2 for number, each in enumerate(loops[:4]))


CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "float bound": ("NK609", lambda: nl.dynamic_range(2.0)),
    "bool bound": ("NK609", lambda: nl.dynamic_range(True)),
    "tensor as a bound": ("NK609", lambda: nl.dynamic_range(placed(tile(np.ones((1, 1), np.int32))))),
    "step 0": ("NK609", lambda: nl.dynamic_range(0, 4, 0)),
    "negative step": ("NK609", lambda: nl.dynamic_range(4, 0, -1)),
    "register as a step": ("NK609", lambda: nl.dynamic_range(0, 4, nisa.register_alloc(1))),
    "register as a step of fori_loop": ("NK609", lambda: nl.fori_loop(0, 4, print, nisa.register_alloc(1))),
    "empty register": ("NK401", lambda: nl.dynamic_range(nisa.register_alloc())),
    "empty register of fori_loop": ("NK401", lambda: nl.fori_loop(0, nisa.register_alloc(), print)),
    "empty condition": ("NK401", lambda: nl.while_loop(nisa.register_alloc(), print)),
    "number as a condition": ("NK609", lambda: nl.while_loop(1, print)),
    "nothing returned": ("NK609", lambda: nl.while_loop(nisa.register_alloc(1), lambda r: None)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_refused_at_once(name: str) -> None:
    """Also where nothing ever takes an iteration of the range."""
    rule, call = CALLS[name]
    with refused(rule):
        inside(call)


def test_a_float_is_no_bound() -> None:
    """A register that was loaded from a float tensor holds one (NK301)."""

    def body() -> None:
        register = nisa.register_alloc()
        nisa.register_load(register, placed(tile(np.full((1, 1), 2.0, np.float32))))
        nl.dynamic_range(register)

    with refused("NK301", "nl.dynamic_range needs an integer"):
        inside(body)


# --- no_reorder ------------------------------------------------------------------------------------------------------


def test_no_reorder_changes_nothing_and_takes_static_loops() -> None:
    """The order is the program's anyway."""

    def body() -> Any:
        cell = placed(empty((1, 1)))
        with nl.no_reorder():
            for number in nl.affine_range(3):
                nisa.memset(cell, number)
        return cell.array

    assert inside(body) == 2


LOOPS: dict[str, Callable[[], Any]] = {
    "dynamic_range": lambda: nl.dynamic_range(2),
    "fori_loop": lambda: nl.fori_loop(0, 2, print),
    "while_loop": lambda: nl.while_loop(nisa.register_alloc(0), print),
}


@pytest.mark.parametrize("name", LOOPS)
def test_dynamic_loops_do_not_run_inside_no_reorder(name: str) -> None:
    """ "Register-based dynamic loops are not supported inside a no_reorder block" (docstring); around it they are."""

    def inner() -> None:
        with nl.no_reorder(), nl.no_reorder():
            pass
        with nl.no_reorder():
            LOOPS[name]()

    def outer() -> None:
        for _ in nl.dynamic_range(2):
            with nl.no_reorder():
                nisa.memset(placed(empty((1, 1))), 0)
        LOOPS[name]()

    with refused("NK601", f"nl.{name} runs inside nl.no_reorder()"):
        inside(inner)
    inside(outer)


def test_no_reorder_ends_where_its_body_raises() -> None:
    """A kernel that catches an exception goes on as before."""

    def body() -> Any:
        try:
            with nl.no_reorder():
                raise ValueError
        except ValueError:
            return len(list(nl.dynamic_range(2)))

    assert inside(body) == 2


def test_outside_of_a_kernel_there_is_no_device() -> None:
    """NK611."""
    for call in LOOPS.values():
        with refused("NK611"):
            call()
    with refused("NK611"), nl.no_reorder():
        pass
