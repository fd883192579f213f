"""An issued instruction and its operands, as a run shows them."""

from __future__ import annotations

from dataclasses import dataclass


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
    rank: int | None = None
