"""The line of a place in code, also where Python has none: artificial instructions and generated code."""

from __future__ import annotations

from itertools import islice
from types import CodeType, FrameType


def line_at(code: CodeType, instruction: int, line: int | None) -> int:
    """Return ``line`` where there is one, else that of the nearest instruction before that has one.

    The first line of ``code`` stands for code without any line. ``instruction`` is an offset in bytes.
    """
    if line is not None:
        return line
    before = islice(code.co_positions(), max(instruction, 0) // 2 + 1)
    lines = [position[0] for position in before if position[0] is not None]
    return lines[-1] if lines else code.co_firstlineno


def line_of(frame: FrameType) -> int:
    """Return the line at which ``frame`` stands."""
    return line_at(frame.f_code, frame.f_lasti, frame.f_lineno)
