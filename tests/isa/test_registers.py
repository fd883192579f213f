"""nisa.register_alloc, register_move, register_load and register_store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import INTEGERS, held

MEMORIES = pytest.mark.parametrize("memory", ["sbuf", "private_hbm", "shared_hbm"])


def one(value: Any, dtype: Any = nl.int32, memory: str = "sbuf") -> Tile:
    """A tensor of one element."""
    return tile(np.full((1, 1), value).astype(dtype.dtype), memory, dtype)


@MEMORIES
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_every_integer_makes_the_round_trip(memory: str, dtype: Any) -> None:
    """Memory to register to register to memory: the smallest and the largest of each dtype."""
    limits = np.iinfo(dtype.dtype)

    def body(value: int) -> Any:
        first, second = nisa.register_alloc(), nisa.register_alloc(0)
        nisa.register_load(first, placed(one(value, dtype, memory)))
        nisa.register_move(second, first)
        out = placed(empty((1, 1), dtype, memory))
        nisa.register_store(dst=out, src=second)
        return out.array

    for value in (limits.min, 0, 17, limits.max):
        assert inside(lambda v=value: body(v)) == value


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float16], ids=str)
def test_floats_keep_their_value(dtype: Any) -> None:
    """A register holds up to 32 bits of any scalar."""

    def body() -> Any:
        register = nisa.register_alloc()
        nisa.register_load(dst=register, src=placed(one(2.75, dtype)))
        out = placed(empty((1,), dtype, "private_hbm"))
        nisa.register_store(out, register)
        return out.array

    assert inside(body).tolist() == [2.75]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_storing_casts(dtype: Any) -> None:
    """As every write of the engines: integers saturate."""

    def body(value: int) -> Any:
        out = placed(empty((1, 1), dtype))
        nisa.register_store(out, nisa.register_alloc(value))
        return out.array

    for value in (-5, 300, 70_000):
        assert inside(lambda v=value: body(v)) == held(value, dtype)


def test_a_moved_value_is_a_copy() -> None:
    """Later moves into the one do not change the other."""

    def body() -> Any:
        a = nisa.register_alloc(1)
        b = nisa.register_alloc()
        nisa.register_move(b, a)
        nisa.register_move(a, 5)
        return a.value, b.value

    assert inside(body) == (5, 1)


def test_a_tensor_given_to_alloc_is_loaded() -> None:
    """Undocumented, but public kernels do it: ``register_alloc(tensor[0:1, 0:1])``."""
    assert inside(lambda: nisa.register_alloc(placed(one(9))[0:1, 0:1]).value) == 9


def test_every_call_reads_and_writes_anew() -> None:
    """A plan that is kept keeps no value."""

    def body() -> Any:
        register, cell = nisa.register_alloc(0), placed(one(0))
        for value in range(4):
            nisa.memset(cell, value * value)
            nisa.register_load(register, cell)
            nisa.register_move(register, register + 1)
            nisa.register_store(cell, register)
        return cell.array

    assert inside(body) == 10


def test_a_dynamic_address_can_be_loaded_from() -> None:
    """One element of a table, chosen by another register."""
    table = np.arange(10, 16, dtype=np.int32)

    def body() -> Any:
        register = nisa.register_alloc(4)
        nisa.register_load(register, placed(tile(table, "private_hbm"))[nl.ds(register, 1)])
        return register.value

    assert inside(body) == 14


LOAD: dict[str, tuple[str, Tile]] = {
    "two elements": ("NK109", tile(np.ones((1, 2), np.int32))),
    "PSUM": ("NK201", one(1, memory="psum")),
    "packed": ("NK301", empty((1, 1), nl.float8_e4m3fn_x4)),
    "unwritten": ("NK401", empty((1, 1), nl.int32)),
}


@pytest.mark.parametrize("name", LOAD)
def test_what_cannot_be_loaded(name: str) -> None:
    """One element, of HBM or SBUF, that was written; and the same to store into, but for the last."""
    rule, source = LOAD[name]

    def load() -> None:
        nisa.register_load(nisa.register_alloc(), placed(source))

    def store() -> None:
        nisa.register_store(placed(source), nisa.register_alloc(1))

    for body in (load,) if rule == "NK401" else (load, store):
        findings = nkitools.simulate(body, rules="report").findings
        assert [each.rule for each in findings] == [rule]


def test_what_is_no_register_or_number() -> None:
    """NK609 by the name of the parameter."""
    finding = refusal(nisa.register_load, 3, one(1))
    assert finding.rule == "NK609"
    assert "`dst` must be a register of nisa.register_alloc, it is int" in finding.message
    for value in (1.5, True, None, one(1)):
        finding = refusal(nisa.register_move, nisa.VirtualRegister(), value)
        assert "`src` must be an integer, a register" in finding.message
    assert refusal(nisa.register_move, nisa.VirtualRegister(), 1 << 40).rule == "NK609"
    for value in (1.5, "1"):
        with pytest.raises(nkitools.KernelError, match="takes an integer or nothing"):
            inside(lambda v=value: nisa.register_alloc(v))


def test_an_empty_register_is_not_read() -> None:
    """NK401."""
    assert refusal(nisa.register_store, empty((1, 1), nl.int32), nisa.VirtualRegister()).rule == "NK401"
    assert refusal(nisa.register_move, nisa.VirtualRegister(), nisa.VirtualRegister()).rule == "NK401"


def test_they_are_recorded() -> None:
    """On the sequencer, with the tensors that they touch."""
    issued = issue(nisa.register_load, nisa.VirtualRegister(), one(1))
    assert issued.instruction.name == "register_load"
    assert [operand.written for operand in issued.instruction.operands] == [False]
    issued = issue(nisa.register_store, empty((1, 1), nl.int32), nisa.VirtualRegister(1))
    assert [operand.written for operand in issued.instruction.operands] == [True]
    assert issue(nisa.register_move, nisa.VirtualRegister(), 1).instruction.operands == ()


def test_scalars_are_allocated_as_the_docstrings_do_it() -> None:
    """``nl.ones([1], ...)`` in SBUF is a (1, 1) tensor: register_load and register_store take both forms."""

    def kernel() -> Any:
        bound = nl.ones([1], dtype=nl.int32, buffer=nl.sbuf)
        register = nisa.register_alloc()
        nisa.register_load(register, bound)
        result = nl.ndarray([1], dtype=nl.int32, buffer=nl.sbuf)
        nisa.register_store(result, register + 6)
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=result)
        assert bound.shape == (1, 1)
        return out

    assert nkitools.simulate(kernel).outputs.tolist() == [[7]]
