"""NK513: tiles that are written and that nothing reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.history.test_races import line_of

X = np.ones((128, 64), np.float32)


def unread(body: Any) -> list[tuple[int, str]]:
    """Return what is found in a kernel that stores a tile after ``body`` has had it, as line and sentence."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        body(tile)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(kernel, X, rules="report")
    return [(each.line, each.message) for each in run.findings if each.rule == "NK513"]


def test_a_lost_result_is_named_once_for_its_line() -> None:
    """With its instruction, tensor and memory, however many turns there are."""

    def body(tile: Any) -> None:
        for _ in range(3):
            doubled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)

    message = "tensor_scalar writes `doubled` (SBUF, float32 [128, 64]), which nothing reads"
    assert unread(body) == [(line_of(body, "tensor_scalar"), message)]


def printed(tile: Any) -> None:
    """A tile that is made to be looked at."""
    doubled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)
    nl.device_print("doubled", doubled)


def reduced(tile: Any) -> None:
    """The exponentials come beside their sums."""
    powers = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    reset = nisa.reduce_cmd.reset_reduce
    nisa.activation(dst=powers, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=sums, reduce_cmd=reset)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=sums)


def of_an_index(tile: Any) -> None:
    """An index on the device chooses rows."""
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=index, pattern=[[0, 1]], offset=0, channel_multiplier=1)
    table = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.hbm)
    nl.store(table, tile)
    rows = table.ap(pattern=[[64, 128], [1, 64]], offset=0, vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=rows)


def of_a_register(tile: Any) -> None:
    """A register takes the value."""
    number = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(number, 1)
    register = nisa.register_alloc(0)
    nisa.register_load(register, number)


def in_a_loop_that_is_skipped(tile: Any) -> None:
    """The loop that would read it did not turn."""
    doubled = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=doubled, data=tile, op0=nl.multiply, operand0=2.0)
    nl.fori_loop(0, nisa.register_alloc(0), lambda _: nisa.tensor_copy(dst=tile, src=doubled))


@pytest.mark.parametrize("body", [printed, reduced, of_an_index, of_a_register, in_a_loop_that_is_skipped])
def test_what_is_read_in_another_way_is_not_lost(body: Any) -> None:
    """By a print, an index, a register, or beside what is wanted; a skipped loop shows nothing."""
    assert unread(body) == []


def test_a_run_without_results_is_about_something_else() -> None:
    """And so is one whose rules are off."""

    def kernel(x: Any) -> None:
        nl.load(x)

    assert nkitools.simulate(kernel, X, rules="report").findings == []


def of_arguments(kernel: Any, *arrays: Any) -> list[tuple[int, str]]:
    """Return what is found in a kernel, as line and sentence."""
    run = nkitools.simulate(kernel, *arrays, rules="report")
    return [(each.line, each.message) for each in run.findings if each.rule == "NK513"]


def test_arguments_that_are_read_in_part_or_not_at_all() -> None:
    """With the part, at the last line that reads another one; a whole argument at the kernel."""

    def kernel(x: Any, bias: Any) -> Any:
        out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[:, 0:32])
        nl.store(out, tile)
        return out

    assert of_arguments(kernel, X, X.copy()) == [
        (line_of(kernel, "nl.load"), "nothing reads `x[0:128, 32:64]` of the argument `x`"),
        (kernel.__code__.co_firstlineno, "nothing reads the argument `bias` (float32 [128, 64])"),
    ]


def test_arguments_that_are_read() -> None:
    """By several views together, in steps, with a mask; integers and what is chosen by an index do not count."""

    def kernel(x: Any, rows: Any) -> Any:
        out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x[:, 0:64:2]), nl.load(x[:, 1:64:2])))
        return out

    assert of_arguments(kernel, X, np.ones((4, 4), np.int32)) == []
