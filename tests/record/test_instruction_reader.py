"""Instructions that are read one after the other are those that their rows describe one by one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record import instruction_reader, rows
from nkitools.record.instruction_record import InstructionRecord, OperandRecord
from nkitools.record.record import Record
from nkitools.record.run import Run
from tests.nki_versions import SINCE_0_7
from tests.record.random_several import CoresProgram, RanksProgram

X = np.arange(512, dtype=np.float32).reshape(128, 4)


def from_its_row(record: Record, position: int) -> InstructionRecord:
    """Return an instruction, each field taken from the record on its own."""
    row = record.row(position)
    counters, state = list[tuple[str, int]](), record.states[position]
    while state >= 0:
        state, site, value = record.loop_states.at(state)
        counters.insert(0, (record.sites[site].bound, value))
    operands = [
        OperandRecord(
            record.name_of(each.storage),
            MEMORY_NAMES[each.layout.memory],
            each.layout.dtype.name,
            each.layout.shape,
            each.layout.strides,
            each.byte_offset,
            each.written,
        )
        for each in row.accesses()
    ]
    site, begun = record.sites[row.site], [program for first, program in record.programs if first <= position]
    return InstructionRecord(
        name=row.plan.name,
        engine=row.plan.engine,
        cycles=row.plan.cycles,
        operands=tuple(operands),
        file=site.file,
        line=site.line,
        program=begun[-1] if begun else (),
        loops=dict(counters),
        rank=record.rank,
        nanoseconds=row.plan.nanoseconds,
    )


def nested(x: Any) -> Any:
    """Loops in loops, with steps and with instructions on both sides, and tensors made in each turn."""
    out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.affine_range(3):
        tile = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        for j in nl.affine_range(1, 6, 2):
            nisa.tensor_scalar(dst=tile[:, 1:3], data=tile[:, 1:3], op0=nl.add, operand0=float(i + j))
            for _k in range(2):
                nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.maximum)
        nisa.dma_copy(dst=out, src=tile)
    return out


def runs() -> list[Run]:
    """Return runs with loops, two cores that take turns, and two ranks."""
    cores, ranks = CoresProgram(3), RanksProgram(4)
    return [
        nkitools.simulate(nested, X),
        nkitools.simulate(cores.kernel, *cores.arguments(), chip=cores.chip, grid=2, rules="off"),
        nkitools.simulate(ranks.kernel, *ranks.arguments(), chip=ranks.chip, ranks=2, rules="off"),
    ]


@SINCE_0_7
@pytest.mark.parametrize("block", [48, 1 << 17])
def test_all_fields_are_those_of_the_row(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over loops, turns of programs and ranks, whatever number of words is read at once, from any position on."""
    monkeypatch.setattr(rows, "_BLOCK", block)
    monkeypatch.setattr(instruction_reader, "_MOST_KEPT", 2)
    for run in runs():
        expected = [from_its_row(record, at) for record in run.all_records for at in range(record.count)]
        assert len(expected) == len(run.instructions) > 20
        assert list(run.instructions) == expected
        assert run.instructions[7:] == expected[7:]
        assert run.instructions[5:19] == expected[5:19]
        assert run.instructions[3::4] == expected[3::4]
        assert run.instructions[::-1] == expected[::-1]
        assert run.instructions[19:5] == []
        assert [run.instructions[at] for at in (0, 11, -1)] == [expected[0], expected[11], expected[-1]]


def test_a_saved_run_reads_as_the_run() -> None:
    """Its turns of loops are kept one by one."""
    run = nkitools.simulate(nested, X)
    assert list(Run.from_json(run.to_json()).instructions) == list(run.instructions)
    assert [each.loops for each in run.instructions][1:4] == [{"i": 0, "j": 1}] + [
        {"i": 0, "j": 1, "_k": turn} for turn in range(2)
    ]


def test_counters_belong_to_one_instruction() -> None:
    """One changed dictionary changes no other instruction of the same turn."""
    instructions = list(nkitools.simulate(nested, X).instructions)
    instructions[1].loops["j"] = 77
    assert [each.loops["j"] for each in instructions[1:6]] == [77, 1, 1, 3, 3]


def test_operands_are_read_when_they_are_asked_for() -> None:
    """They are then kept; a copy, a pickle and a dictionary of an instruction have all fields."""
    found = nkitools.simulate(nested, X).instructions[1]
    assert "operands" not in vars(found)
    for made in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert made == found
        assert [each.tensor for each in made.operands] == ["tile", "tile"]
    assert vars(found)["operands"] is found.operands
    assert dataclasses.replace(found, line=3).operands == found.operands
    assert dataclasses.asdict(found)["operands"][0]["shape"] == (128, 2)
    assert repr(found).startswith("<tensor_scalar (vector) test_instruction_reader.py:")


def test_other_attributes_are_missing() -> None:
    """As of any object; a field cannot be set."""
    found = nkitools.simulate(nested, X).instructions[1]
    with pytest.raises(AttributeError, match="an InstructionRecord has no attribute 'operand'"):
        found.operand  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.line = 3  # type: ignore[misc]
