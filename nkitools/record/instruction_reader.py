"""Instructions as a run shows them, read from a record one after the other; fields that many share are read once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.record.instruction_record import SHOWN_COUNTERS, SHOWN_OF_PLANS, InstructionRecord, OperandRecord
from nkitools.record.record import Record
from nkitools.record.rows import access_of, packed_operands

_MOST_KEPT = 1 << 14  # operands that are kept for the instructions to come
_SPARSE = 16  # instructions for each wanted one, from which on those between are not read

# Makes an object whose fields are then set all at once: __init__ of a frozen dataclass takes four times as long.
_new = object.__new__


def instruction_at(record: Record, position: int) -> InstructionRecord:
    """Return the instruction at a position of a record."""
    (found,) = instructions_between(record, position, position + 1)
    return found


def instructions_at(record: Record, positions: Sequence[int]) -> Iterator[InstructionRecord]:
    """Yield the instructions at some positions of a record, which ascend."""
    if not positions or positions[-1] - positions[0] >= _SPARSE * len(positions):
        yield from (instruction_at(record, position) for position in positions)
        return
    wanted = set(positions)
    for position, found in enumerate(instructions_between(record, positions[0], positions[-1] + 1), positions[0]):
        if position in wanted:
            yield found


def instructions_between(record: Record, first: int, last: int) -> Iterator[InstructionRecord]:
    """Yield the instructions of a record from the position ``first`` to the one before ``last``."""
    heads, operands, counters = dict[int, dict[str, Any]](), _Operands(record).read, _Counters(record).at
    states, programs = record.states, record.programs
    program, ends = record.program_at(first), first
    state, loops = -1, dict[str, int]()
    for position, (head, packed) in enumerate(record.packed_rows(first, last), first):
        if position >= ends:
            program = record.program_at(position)
            turn = bisect_right(programs, position, key=lambda begun: begun[0])
            ends = programs[turn][0] if turn < len(programs) else last
        shared = heads.get(head)
        if shared is None:
            shared = heads[head] = _shared(record, position)
        if states[position] != state:
            state = states[position]
            loops = counters(state)
        found = _new(InstructionRecord)
        fields = found.__dict__
        fields.update(shared)
        fields["program"] = program
        fields["loops"] = loops.copy()
        for name in SHOWN_COUNTERS:
            fields[name] = record.counted[name][position]
        fields["_read"] = operands, packed
        yield found


def _shared(record: Record, position: int) -> dict[str, Any]:
    """Return the fields that all instructions of one plan at one site share."""
    row = record.row(position)
    site = record.sites[row.site]
    return {
        **{name: getattr(row.plan, name) for name in SHOWN_OF_PLANS},
        "file": site.file,
        "line": site.line,
        "rank": record.rank,
    }


class _Operands:
    """Reads operands out of packed rows."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: dict[tuple[bytes, bool], OperandRecord] = {}

    def read(self, packed: bytes) -> tuple[OperandRecord, ...]:
        """Return the operands of an instruction."""
        if len(self._known) > _MOST_KEPT:
            self._known.clear()
        known, written = self._known, self._record.written_by(packed)
        return tuple(
            [known.get(each) or self._add(each) for each in zip(packed_operands(packed), written, strict=False)]
        )

    def _add(self, key: tuple[bytes, bool]) -> OperandRecord:
        access = access_of(*key)
        layout = access.layout
        found = self._known[key] = OperandRecord(
            self._record.name_of(access.storage),
            MEMORY_NAMES[layout.memory],
            layout.dtype.name,
            layout.shape,
            layout.strides,
            access.byte_offset,
            access.written,
        )
        return found


class _Counters:
    """The counters of loops, kept for consecutive turns of one loop, which share names and outer loops.

    ``first``, ``behind``, ``value``, ``step``: of these turns, as `LoopStates.row_of` returns them.
    ``turn``: the counters of one of them; ``name``: of the innermost loop's counter.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._first = self._behind = self._value = self._step = 0
        self._turn: dict[str, int] = {}
        self._name = ""

    def at(self, state: int) -> dict[str, int]:
        """Return the counters of a loop state with their names, outermost first; the caller copies them."""
        if state < 0:
            return {}
        if not self._first <= state < self._behind:
            self._first, self._behind, _, _, self._value, self._step = self._record.loop_states.row_of(state)
            self._turn = self._record.loops(state)
            self._name = next(reversed(self._turn))
        self._turn[self._name] = self._value + (state - self._first) * self._step
        return self._turn
