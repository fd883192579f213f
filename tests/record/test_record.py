"""The record of a run: what each instruction was, and how little it takes to keep."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run import Run
from tests.record import kernels

X = np.arange(512, dtype=np.float32).reshape(128, 4)


def row_maxima(x: Any) -> Any:
    """Three instructions, of which each operand is known."""
    out = nl.ndarray((128, 1), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 4), dtype=x.dtype, name="x_tile")
    nisa.dma_copy(dst=tile, src=x)
    maxima = nl.ndarray((128, 2), dtype=nl.bfloat16)
    nisa.tensor_reduce(dst=maxima[:, 1:2], op=nl.maximum, data=tile, axis=1)
    nisa.dma_copy(dst=out, src=maxima[:, 1:2])
    return out


def test_an_instruction_tells_what_it_was() -> None:
    """Name, engine, place and operands: tensor, memory, dtype, region, and whether it was written."""
    run = nkitools.simulate(row_maxima, X)
    first_line = row_maxima.__code__.co_firstlineno
    reduce = run.instructions[1]
    assert (reduce.name, reduce.engine) == ("tensor_reduce", "vector")
    assert (reduce.file, reduce.line) == (__file__, first_line + 6)
    assert (reduce.program, reduce.loops) == ((), {})
    written, read = reduce.operands
    assert (written.tensor, written.memory, written.dtype, written.written) == ("maxima", "SBUF", "bfloat16", True)
    assert (written.shape, written.byte_offset) == ((128, 1), 2)
    assert written.strides[0] == 4
    assert (read.tensor, read.memory, read.dtype, read.written) == ("x_tile", "SBUF", "float32", False)
    assert (read.shape, read.strides, read.byte_offset) == ((128, 4), (16, 4), 0)
    assert [each.operands[1].tensor for each in run.instructions] == ["x", "x_tile", "maxima"]
    assert [each.operands[0].memory for each in run.instructions] == ["SBUF", "SBUF", "shared HBM"]


def test_instructions_are_a_sequence() -> None:
    """Indexed from both ends, sliced, iterated, measured."""
    instructions = nkitools.simulate(row_maxima, X).instructions
    assert len(instructions) == 3
    assert [each.name for each in instructions] == ["dma_copy", "tensor_reduce", "dma_copy"]
    assert instructions[-1] == instructions[2]
    assert [each.line for each in instructions[1:]] == [each.line for each in list(instructions)[1:]]
    assert instructions[::-2] == [instructions[2], instructions[0]]
    with pytest.raises(IndexError, match="instruction 3 of a run of 3 instructions"):
        instructions[3]
    with pytest.raises(IndexError):
        instructions[-4]


def test_a_run_without_a_record_has_no_instructions() -> None:
    """Devices and AWS's simulator tell nothing of them."""
    assert list(Run("kernel", "neuron").instructions) == []


def test_any_instruction_of_many_is_found() -> None:
    """Rows have different lengths; the positions of the first, the last and those between agree with the order."""

    def kernel(x: Any) -> None:
        tile = nl.load(x)
        for i in nl.affine_range(100):
            nisa.memset(tile, float(i))
            nisa.tensor_tensor(tile, tile, tile, nl.add)
            nisa.tensor_scalar(tile, tile, nl.add, tile[:, 0:1], op1=nl.add, operand1=tile[:, 1:2])

    instructions = nkitools.simulate(kernel, X).instructions
    names = ["memset", "tensor_tensor", "tensor_scalar"]
    assert instructions[300].name == "tensor_scalar"
    assert [each.name for each in instructions] == ["dma_copy", *names * 100]
    for position in (299, 1, 150, 32, 33, 64):
        assert instructions[position].name == names[(position - 1) % 3]
        assert instructions[position].loops == {"i": (position - 1) // 3}
    assert len(instructions[300].operands) == 4


def test_an_instruction_of_a_helper_belongs_to_the_helpers_line() -> None:
    """The author's helper module is the author's."""

    def kernel() -> None:
        kernels.filled(4)

    (instruction,) = nkitools.simulate(kernel).instructions
    assert instruction.file == kernels.__file__
    assert instruction.line == kernels.filled.__code__.co_firstlineno + 2
    assert instruction.operands[0].tensor == "tile"


def test_tensors_are_named_by_what_the_author_called_them() -> None:
    """The name given, else the parameter, else the variable of the new tensor, else nothing."""

    def kernel(weights: Any) -> None:
        a = nl.load(weights[0])
        b: Any = nl.ndarray((128, 4), dtype=nl.float32, name="named")
        nisa.tensor_tensor(b, a, nl.add(a, a), nl.add)

    run = nkitools.simulate(kernel, [X])
    load, add, total = run.instructions
    assert [each.tensor for each in load.operands] == ["a", "weights[0]"]
    assert [each.tensor for each in add.operands] == ["", "a", "a"]
    assert [each.tensor for each in total.operands] == ["named", "a", ""]


def test_the_tensors_that_a_helper_returns_together_are_named_by_its_caller() -> None:
    """Of a tuple or list, also through another helper; where the caller keeps them together, by their places."""

    def made() -> Any:
        return nl.ndarray((128, 4), dtype=nl.float32)

    def pair() -> Any:
        return nl.ndarray((128, 4), dtype=nl.float32), made()

    def through() -> Any:
        return pair()

    def single() -> Any:
        return [nl.ndarray(shape=(128, 4), dtype=nl.float32, buffer=nl.sbuf)]

    def kernel() -> None:
        keys, values = pair()
        more, others = through()
        both = pair()
        (one,) = single()
        for each in (keys, values, more, others, *both, one, *pair()):
            nisa.memset(dst=each, value=0)

    run = nkitools.simulate(kernel)
    names = ["keys", "values", "more", "others", "both[0]", "both[1]", "one", "", ""]
    assert [each.operands[0].tensor for each in run.instructions] == names


def test_programs_are_told_apart() -> None:
    """Also where one of them issued nothing."""

    def kernel(x: Any) -> None:
        if nl.program_id() == 1:
            nl.load(x)
            nl.load(x)

    run = nkitools.simulate(kernel, X, grid=2)
    assert [each.program for each in run.instructions] == [(1,), (1,)]


def test_ten_thousand_instructions_take_64_bytes_each() -> None:
    """Whatever holds a row, a loop state and what both refer to; three operands each, loads and stores are less."""

    def kernel(x: Any) -> None:
        tile = nl.load(x)
        for _ in nl.affine_range(100):
            for _ in range(100):
                nisa.tensor_tensor(tile, tile, tile, nl.add)

    run = nkitools.simulate(kernel, np.ones((128, 4), np.float32))
    record = run.record
    assert record is not None
    assert record.count == 10_001
    loops = [record.loop_states.firsts, record.loop_states.rows]
    kept = [record.row_words, record.states, *loops, record._starts, record.sites.all, record.plans]
    assert sum(sys.getsizeof(each) for each in kept) <= 64 * record.count


def test_the_record_keeps_no_arrays() -> None:
    """A tile that the kernel has dropped is gone, however many instructions used it."""
    import gc
    import weakref

    dropped: list[Any] = []

    def kernel(x: Any) -> None:
        for _ in range(3):
            tile = nl.load(x)
            nisa.tensor_tensor(tile, tile, tile, nl.add)
            dropped.append(weakref.ref(tile.array))

    run = nkitools.simulate(kernel, X)
    gc.collect()
    assert len(run.instructions) == 6
    assert [reference() for reference in dropped] == [None] * 3
