"""Calls that are made again with operands of the same form: the same results, rows and findings as the first time."""

from __future__ import annotations

import gc
import sys
from itertools import repeat
from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from nkitools.chip.memory import Storage
from tests.dialects.legacy.running import random, refusal, run


def rows(done: Any) -> list[Any]:
    """Return the name, operands and line of each instruction."""
    return [
        (each.name, each.engine, [(o.memory, o.dtype, o.shape, o.byte_offset, o.written) for o in each.operands])
        for each in done.instructions
    ]


CALLS: dict[str, tuple[Any, Any]] = {
    "operator": (lambda x, y: x * y, lambda x, y: x * y),
    "function": (lambda x, y: nl.maximum(x, y), np.maximum),
    "number": (lambda x, y: x - 2.5, lambda x, y: x - 2.5),
    "number first": (lambda x, y: 2.5 - x, lambda x, y: 2.5 - x),
    "number first, function": (lambda x, y: nl.divide(3, x), lambda x, y: 3 / x),
    "comparison": (lambda x, y: x > y, lambda x, y: x > y),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_call_made_again_is_the_same(name: str, dtype: Any) -> None:
    """Three calls of one form: each gives NumPy's numbers of its own operands, and all the same row but its tiles."""
    call, expected = CALLS[name]

    def kernel(x: Any, y: Any) -> Any:
        result = nl.ndarray((3, 8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        for turn in nl.static_range(3):
            first, second = nl.load(x[turn]), nl.load(y[turn])
            nl.store(result[turn], nl.copy(call(first, second), dtype=nl.float32))
        return result

    x, y = random(3, 8, 16, dtype=dtype), random(3, 8, 16, dtype=dtype, seed=1)
    done = run(kernel, x, y)
    wanted = np.asarray(expected(x.astype(np.float32), y.astype(np.float32)))
    if wanted.dtype != bool and name not in ("number", "number first"):  # which make it float32
        wanted = wanted.astype(dtype)
    np.testing.assert_allclose(done.outputs, wanted.astype(np.float32), rtol=1e-6)
    found = rows(done)
    assert len(found) == 15
    assert found[2] == found[7] == found[12]
    assert [each.loops for each in done.instructions][2::5] == [{"turn": turn} for turn in range(3)]


def test_operands_of_another_form_are_looked_at_anew() -> None:
    """A tile of other strides, dtype or memory, or a number of another kind, gets a plan of its own."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((4, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        wide = nl.load(x)
        tile = nl.copy(wide[:, 0:8])
        column = nl.copy(wide[:, 0:1])
        values = [tile + tile, wide[:, 8:16] + tile, tile + column, tile + np.float16(1.0)]
        for number, value in enumerate(values * 2):
            nl.store(result[number % 4], value)
        return result

    x = random(8, 16)
    left, right = x[:, :8], x[:, 8:]
    np.testing.assert_allclose(run(kernel, x).outputs, [left + left, right + left, left + left[:, :1], left + 1], 1e-6)


def test_a_partly_written_operand_goes_the_usual_way() -> None:
    """Undefined lanes travel through a call whose form is known, and are found where they are stored."""

    def kernel(x: Any, bad: bool) -> Any:
        result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:8, 0:8]
        tile = nl.load(x)
        for _ in nl.static_range(2):
            tile = tile * tile
        part = nl.load(x[i, j], mask=i < 5)
        squared = part * part
        nl.store(result, squared if bad else tile)
        return result

    x = random(8, 8)
    np.testing.assert_allclose(run(kernel, x, bad=False).outputs, x**4, rtol=1e-6)
    assert refusal(kernel, x, bad=True).rule == "NK405"


def test_blocks_are_no_tiles_however_often_a_form_is_met() -> None:
    """A tensor with block dimensions is refused as an operand also where its first block's form is known."""

    def kernel(x: Any) -> None:
        tile = nl.load(x)
        for _ in nl.static_range(2):
            tile = tile + tile
        blocks = nl.zeros((2, nl.par_dim(8), 8), dtype=nl.float32)
        blocks + tile

    assert refusal(kernel, random(8, 8), rules="error").rule == "NK612"


def test_what_a_repeated_call_makes_of_its_values_is_found_at_its_line() -> None:
    """NK404 names the line and the turn of the loop in which a call of a known form made the first infinity."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for _turn in nl.static_range(3):
            tile = tile * tile  # here
        nl.store(result, tile)
        return result

    done = run(kernel, np.full((8, 8), 1e15, np.float32))
    (found,) = [each for each in done.findings if each.rule == "NK404"]
    with open(__file__) as source:
        assert source.readlines()[found.line - 1].endswith("# here\n")
    assert found.loops == {"_turn": 1}


def frames(kernel: Any, turns: int) -> int:
    """How many Python frames a run of a kernel with so many turns takes, once its forms are known."""
    x = random(8, 8)
    run(kernel, x, turns=turns)
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        run(kernel, x, turns=turns)
    finally:
        sys.setprofile(None)
    return count


def _assign(z: Any, x: Any, y: Any) -> None:
    z[...] = nisa.tensor_tensor(x, y, nl.add)


def _assign_indexed(z: Any, x: Any, y: Any) -> None:
    i, j = nl.mgrid[0:8, 0:8]
    z[i, j] = nisa.tensor_tensor(x[i, j], y[i, j], nl.add)


def _operate(z: Any, x: Any, y: Any) -> None:
    x * y


@pytest.mark.fast_path
@pytest.mark.parametrize(("statement", "most"), [(_assign, 96), (_assign_indexed, 141), (_operate, 42)])
def test_a_warm_statement_takes_few_frames(statement: Any, most: int) -> None:
    """Python frames of one more turn: the difference of 110 and 10 turns, by 100."""

    def kernel(x: Any, turns: int) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        z = nl.zeros(x.shape, dtype=x.dtype)
        for _ in repeat(None, turns):  # a loop that the record does not count
            statement(z, tile, tile)
        nl.store(result, z)
        return result

    frames(kernel, 3)  # what the first calls of an instruction prepare
    taken = (frames(kernel, 110) - frames(kernel, 10)) / 100
    assert round(taken) <= most  # a table that grows within the turns takes a few


def test_an_assignment_made_again_is_the_same() -> None:
    """The value goes to the tile, the row too, and a sum of products adds: three times, with equal rows."""

    def kernel(x: Any, y: Any) -> Any:
        result = nl.ndarray((3, 8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((8, 8), dtype=nl.float32, buffer=nl.psum)
        z = nl.ndarray((8, 16), dtype=nl.float32)
        for turn in nl.static_range(3):
            first, second = nl.load(x), nl.load(y)
            z[0:8, 0:8] = nisa.tensor_tensor(first[0:8, 0:8], second[0:8, 0:8], nl.multiply)
            z[0:8, 8:16] = first[0:8, 0:8] + 1.0
            total += nisa.nc_matmul(first, second)
            nl.store(result[turn], nl.copy(z[:, 0:8] + z[:, 8:16]) + total)
        return result

    x, y = random(16, 8), random(16, 8, seed=1)
    done = run(kernel, x, y)
    first, second = x[:8], y[:8]
    expected = [first * second + first + 1 + (turn + 1) * (x.T @ y) for turn in range(3)]
    np.testing.assert_allclose(done.outputs, expected, rtol=1e-4, atol=1e-5)
    found = [row for row in rows(done)[1:] if row[0] != "memset"]
    assert len(found) == 27
    turns = [found[:8], found[9:17], found[18:26]]  # without the store, whose place moves
    assert turns[0] == turns[1] == turns[2]
    assert [each.name for each in done.instructions][3:6] == ["tensor_tensor", "tensor_scalar", "nc_matmul"]
    written = [each.operands[0] for each in done.instructions][3:6]
    assert [(each.tensor, each.byte_offset) for each in written] == [("z", 0), ("z", 32), ("total", 0)]
    (total,) = done.dependences.flow.starts.shape
    assert total == len(done.instructions) + 1


def test_a_run_keeps_none_of_its_memory() -> None:
    """All storages of a run are free when its results are, without a look for circles."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x) * 2)
        return result

    def storages() -> int:
        return sum(issubclass(type(each), Storage) for each in gc.get_objects())

    run(kernel, random(8, 8))
    gc.collect()
    gc.disable()
    try:
        before = storages()
        run(kernel, random(8, 8))
        assert storages() == before
    finally:
        gc.enable()


def test_a_load_that_breaks_a_rule_does_so_each_time() -> None:
    """The second load of 300 rows is NK101 like the first one, at its own line, in this run and in the next."""

    def kernel(x: Any, y: Any) -> Any:
        result = nl.ndarray((300,), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.load(x)
        nl.store(result, nl.load(y))
        return result

    first = kernel.__code__.co_firstlineno
    for _ in range(2):
        done = run(kernel, np.ones(300, np.float32), np.ones(300, np.float32), rules="report")
        found = [(each.rule, each.line - first) for each in done.findings if "nl.load" in each.message]
        assert found == [("NK101", 2), ("NK101", 3)]
