"""A run: what came out of a kernel, and everything that happened on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from nkitools.record.prints import Print
    from nkitools.record.record import Record


@dataclass(frozen=True)
class OperandRecord:
    """One operand of an issued instruction: its tensor, and the region of it."""

    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int
    written: bool


@dataclass(frozen=True)
class InstructionRecord:
    """One issued instruction."""

    name: str
    engine: str
    cycles: float
    operands: tuple[OperandRecord, ...]
    file: str
    line: int
    program: tuple[int, ...]
    loops: dict[str, int]


class Instructions(Sequence[InstructionRecord]):
    """What was issued, in order; read from the compact record when asked for."""

    def __init__(self, record: Record | None) -> None:
        self._record = record

    def __len__(self) -> int:
        return 0 if self._record is None else self._record.count

    @overload
    def __getitem__(self, index: int) -> InstructionRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[InstructionRecord]: ...
    def __getitem__(self, index: int | slice) -> InstructionRecord | list[InstructionRecord]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if self._record is None or not 0 <= position < len(self):
            raise IndexError(f"instruction {index} of a run of {len(self)} instructions")
        return self._record.instruction(position)

    def __iter__(self) -> Iterator[InstructionRecord]:
        for position in range(len(self)):
            yield self[position]


@dataclass(eq=False)
class Run:
    """The result of one simulated (or measured) kernel call."""

    kernel: str
    target: str
    chip: str = ""
    outputs: Any = None
    prints: list[Print] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    error: BaseException | None = None
    record: Record | None = field(default=None, repr=False)

    @property
    def instructions(self) -> Instructions:
        """What was issued: name, engine, operands, file and line of each instruction."""
        return Instructions(self.record)

    @property
    def findings_left_out(self) -> int:
        """How many repeats of a finding at one line were counted only, since there were more than 1000."""
        return 0 if self.record is None else self.record.findings_left_out
