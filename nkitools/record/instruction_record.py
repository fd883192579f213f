"""An issued instruction and its operands, as a run shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nkitools.rules.shown_text import shown_file, shown_line


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

    def __repr__(self) -> str:
        return f"<{self.tensor or '(unnamed)'} {self.memory} {self.dtype} {list(self.shape)}>"


@dataclass(frozen=True)
class InstructionRecord:
    """One issued instruction."""

    name: str
    engine: str
    cycles: float  # of the engine's clock, 0 for a transfer
    operands: tuple[OperandRecord, ...]
    file: str
    line: int
    program: tuple[int, ...]
    loops: dict[str, int]
    rank: int | None = None
    nanoseconds: float = 0.0  # of a transfer with its completion, 0 for others

    def __repr__(self) -> str:
        program = f" program {', '.join(map(str, self.program))}" if any(self.program) else ""
        rank = "" if self.rank is None else f" rank {self.rank}"
        counters = "".join(f" {name}={value}" for name, value in self.loops.items())
        named = [each.tensor or "(unnamed)" for each in self.operands if each.written]
        read = [each.tensor or "(unnamed)" for each in self.operands if not each.written]
        place = f"{shown_file(self.file, whole=False)}:{self.line}"
        return shown_line(
            f"<{self.name} ({self.engine}) {place}{rank}{program}{counters}: {', '.join(named)} from {', '.join(read)}>"
        )

    if not TYPE_CHECKING:  # an editor would take it for attributes of any name

        def __getattr__(self, name: str) -> Any:
            """Return the operands, which `nkitools.record.instruction_reader` reads when they are first asked for."""
            if name != "operands" or "_read" not in self.__dict__:
                raise AttributeError(f"an InstructionRecord has no attribute {name!r}", name=name, obj=self)
            read, packed = self.__dict__["_read"]
            found = self.__dict__["operands"] = read(packed)
            return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, for pickles and copies."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
