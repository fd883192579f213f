"""The issued instructions of a run as a sequence, and as NumPy's structured arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from nkitools.record.instruction_columns import InstructionColumns, columns_of
from nkitools.record.instruction_reader import instructions_between
from nkitools.record.instruction_record import InstructionRecord
from nkitools.record.record import Record
from nkitools.rules.shown_text import shown_file

_LISTED = 6  # instructions that the text of the sequence names


class Instructions(Sequence[InstructionRecord]):
    """The issued instructions in order, rank after rank; read from the compact records when asked for."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return sum(record.count for record in self._records)

    @overload
    def __getitem__(self, index: int) -> InstructionRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[InstructionRecord]: ...
    def __getitem__(self, index: int | slice) -> InstructionRecord | list[InstructionRecord]:
        if isinstance(index, slice):
            positions = range(*index.indices(len(self)))
            if positions.step == 1:
                return list(self._between(positions.start, positions.stop))
            return [self[position] for position in positions]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"instruction {index} of a run of {len(self)} instructions")
        (found,) = self._between(position, position + 1)
        return found

    def __repr__(self) -> str:
        """Return the number of instructions, and the first of them with their lines."""
        lines = [
            f"  {number}: {one.name} at {shown_file(one.file, whole=False)}:{one.line}"
            for number, one in enumerate(self[:_LISTED])
        ]
        more = [f"  ... and {len(self) - _LISTED} more"] if len(self) > _LISTED else []
        return "\n".join([f"<Instructions: {len(self)}", *lines, *more]) + ">"

    def __iter__(self) -> Iterator[InstructionRecord]:
        return self._between(0, len(self))

    def _between(self, first: int, last: int) -> Iterator[InstructionRecord]:
        base = 0
        for record in self._records:
            count = record.count
            yield from instructions_between(record, max(first - base, 0), min(last - base, count))
            base += count

    def columns(self) -> InstructionColumns:
        """Return the instructions as three NumPy structured arrays: ``instructions``, ``operands`` and ``loops``.

        They have the fields of the records, an entry for each instruction, operand and turn of a loop.
        """
        return columns_of(self._records)
