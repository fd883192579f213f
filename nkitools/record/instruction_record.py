"""An issued instruction and its operands, as a run shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any


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
    cycles: float  # of the engine's clock, 0 for a transfer
    operands: tuple[OperandRecord, ...]
    file: str
    line: int
    program: tuple[int, ...]
    loops: dict[str, int]
    rank: int | None = None
    nanoseconds: float = 0.0  # of a transfer with its completion, 0 for others

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
