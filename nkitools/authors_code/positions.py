"""The line and column of a place in code; a line also for instructions to which Python gives none."""

from __future__ import annotations

import ast
from itertools import islice
from types import CodeType, FrameType

Span = tuple[int | None, int | None, int | None, int | None]


def position_of(code: CodeType, instruction: int) -> tuple[int | None, int | None]:
    """Return the line of an instruction (its offset in bytes) and its column from 0; None if unknown."""
    line, _, column, _ = next(islice(code.co_positions(), max(instruction, 0) // 2, None), (None,) * 4)
    return line, column


def line_at(code: CodeType, instruction: int, line: int | None) -> int:
    """Return ``line`` if it is known, else that of the nearest instruction before that has one.

    The first line of ``code`` if none has. ``instruction``: an offset in bytes.
    """
    if line is not None:
        return line
    before = islice(code.co_positions(), max(instruction, 0) // 2 + 1)
    lines = [position[0] for position in before if position[0] is not None]
    return lines[-1] if lines else code.co_firstlineno


def line_of(frame: FrameType) -> int:
    """Return the line that ``frame`` is executing."""
    return line_at(frame.f_code, frame.f_lasti, frame.f_lineno)


def span_of(code: CodeType, instruction: int) -> Span:
    """Return the first and last line, and the first and last column, of an instruction (its offset in bytes)."""
    found = islice(code.co_positions(), max(instruction, 0) // 2, None)
    return next(found, (None,) * 4)


def span(node: ast.expr) -> Span:
    """Return the first and last line, and the first and last column, of a node."""
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
