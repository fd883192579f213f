"""The lines of an author's file, and the line of a place in code, also where Python has none: generated code."""

from __future__ import annotations

import linecache
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


def source_lines(file: str, *, fresh: bool = False) -> list[str]:
    """Return the lines of a source file, with their ends; none for code without a file or a notebook's cell.

    ``fresh`` looks whether the file has changed since it was read. Code of ``exec`` shares the name ``<string>`` with
    the program of ``python -c``, whose text `linecache` has from Python 3.13 on.
    """
    if file == "<string>":
        return []
    if fresh:
        linecache.checkcache(file)
    return linecache.getlines(file)
