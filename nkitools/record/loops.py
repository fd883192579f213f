"""Loop counters: from the author's frames where they still stand, from nl ranges where they are history."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType

import numpy as np

from nkitools.record.sites import is_internal


@lru_cache(maxsize=64)
def _loops_of_source(source: str) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """(first line of the body, last line, counter names) of every for loop, outer loops first."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    found = [
        (node.lineno, node.body[0].lineno, node.body[-1].end_lineno or 0, _names(node.target))
        for node in ast.walk(tree)
        if isinstance(node, ast.For)
    ]
    return tuple((first, last, names) for _, first, last, names in sorted(found))


def _names(target: ast.expr) -> tuple[str, ...]:
    return tuple(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


@lru_cache(maxsize=1024)
def _function_span(source: str, first_line: int) -> tuple[int, int]:
    """The lines of the function whose code object begins at ``first_line``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if start == first_line:
                return start, node.end_lineno or start
    return 0, 1 << 30


def loop_names(filename: str, line: int, first_line: int = 0) -> list[str]:
    """Names of the counters of the for loops around a line, outermost first."""
    source = "".join(linecache.getlines(filename))
    loops = _loops_of_source(source)
    if not loops:
        return []
    start, end = _function_span(source, first_line) if first_line else (0, 1 << 30)
    return [
        name
        for first, last, names in loops
        if start <= first and last <= end and first <= line <= last
        for name in names
    ]


def _author_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The author's frames from ``frame`` outward, up to the launch of the kernel."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "nkitools.launch.programs":
            return
        if not is_internal(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def counters(frame: FrameType | None) -> dict[str, int]:
    """Counter names and values of the loops around ``frame``'s line and around its callers' lines, outermost first.

    Where a caller's counter has the name of an inner one, it is shown as ``function.name``.
    """
    found: list[tuple[str, str, int]] = []
    for each in reversed(list(_author_frames(frame))):
        code = each.f_code
        names = loop_names(code.co_filename, each.f_lineno, code.co_firstlineno if code.co_name != "<module>" else 0)
        for name in names:
            value = each.f_locals.get(name)
            if isinstance(value, (int, np.integer)) or hasattr(value, "__index__"):
                found.append((code.co_name, name, int(value.__index__())))
    inner = {name: index for index, (_, name, _) in enumerate(found)}
    return {
        name if inner[name] == index else f"{function}.{name}": value
        for index, (function, name, value) in enumerate(found)
    }
