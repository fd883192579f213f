"""Open instructions: in the record once, where the next step says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from nkitools.chip.dtypes import float32
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.record.beside_rows import Part
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.rows import words_of


def tile() -> NkiTensor:
    """A tile of 4 x 2 numbers."""
    return NkiTensor.whole(Storage((4, 2), float32, MemoryRegion.sbuf))


def record_of(*tensors: NkiTensor) -> Record:
    """A record of a run that these tensors belong to."""
    record = Record()
    for each in tensors:
        record.allocated(each.storage)
    return record


def plan(number: int) -> Any:
    """A plan of an instruction with one output and one input."""
    return SimpleNamespace(id=number, name=f"plan{number}", written=(True, False), names_only=False)


def written(record: Record) -> list[tuple[str, int]]:
    """The name and the destination of each instruction."""
    return [(row.plan.name, row.storages()[0]) for row in record.rows_between()]


def opened(record: Record, value: NkiTensor, source: NkiTensor) -> Any:
    """The open instruction of a call that makes ``value`` of ``source``."""
    record.begin_value(value.storage)
    record.commit(plan(1), -1, words_of((value, source)))
    return record.end_value(value.storage, is_masked=False)


def test_what_is_assigned_is_written_there_by_one_instruction() -> None:
    """The copy leaves no row: its destination is that of the instruction, with the part of it that it touches."""
    value, source, target = tile(), tile(), tile()
    record = record_of(value, source, target)
    instruction = opened(record, value, source)
    rows, own = Part(target.layout, rows=np.arange(2)), Part(source.layout)
    record.beside.keep(record.next_position, 1, own)

    def copy() -> None:
        record.beside.keep(record.next_position, 0, rows)
        record.beside.keep(record.next_position, 1, Part(value.layout))
        record.commit(plan(2), -1, words_of((target, value)))

    assert record.assign(copy)
    assert instruction.is_closed
    assert written(record) == [("plan1", target.storage.id)]
    assert sorted(record.beside.parts(), key=lambda each: each[:2]) == [(0, 0, rows), (0, 1, own)]


def test_a_refused_copy_leaves_the_instruction_as_it_was() -> None:
    """Where nothing has been copied the instruction has written to its own tile."""
    value, source = tile(), tile()
    record = record_of(value, source)
    opened(record, value, source)
    own = Part(source.layout)
    record.beside.keep(record.next_position, 1, own)
    assert not record.assign(lambda: None)
    assert written(record) == [("plan1", value.storage.id)]
    assert list(record.beside.parts()) == [(0, 1, own)]


def test_the_loop_is_that_of_the_call() -> None:
    """An instruction that a later turn closes belongs to the turn in which it was issued."""
    value, source = tile(), tile()
    record = record_of(value, source)
    record.loop = 3
    opened(record, value, source)
    record.loop = 4
    record.begin_instruction()
    record.commit(plan(2), -1, words_of((source, value)))
    assert written(record) == [("plan1", value.storage.id), ("plan2", source.storage.id)]
    assert list(record.states) == [3, 4]


def test_only_what_writes_to_the_value_stays_open() -> None:
    """Other instructions of the call are in the record at once; of two that write to the tile none is the only one."""
    value, source, scratch = tile(), tile(), tile()
    record = record_of(value, source, scratch)
    record.begin_value(value.storage)
    record.commit(plan(1), -1, words_of((scratch, source)))
    assert record.open is None
    record.commit(plan(2), -1, words_of((value, scratch)))
    record.commit(plan(3), -1, words_of((value, scratch)))
    last = record.end_value(value.storage, is_masked=False)
    assert last is record.open
    assert not last.is_only_writer
    assert record.count == 3
    assert last.is_closed
    assert [name for name, _ in written(record)] == ["plan1", "plan2", "plan3"]


def test_a_call_under_a_mask_can_be_recognised_where_it_has_issued_nothing() -> None:
    """Its value is still the newest one, until the next instruction begins."""
    value = tile()
    record = record_of(value)
    record.begin_value(value.storage)
    marker = record.end_value(value.storage, is_masked=True)
    assert marker is not None
    assert record.open is marker
    assert record.count == 0
    assert record.open is marker
    record.begin_instruction()
    assert record.open is None


def test_columns_have_the_open_instruction_as_well() -> None:
    """Asked while it waits for its assignment, it is one row of theirs, with its own tile as its destination."""
    value, source = tile(), tile()
    record = record_of(value, source)
    opened(record, value, source)
    columns = Columns(record)
    assert columns.storages.tolist() == [value.storage.id, source.storage.id]
    assert columns.positions.tolist() == [0, 0]
    assert columns.written_storages == {value.storage.id}
