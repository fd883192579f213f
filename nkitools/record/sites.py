"""The author's line: found once per instruction, cheaply, skipping nkitools' own frames."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether a source file belongs to nkitools itself (generated code included)."""
    known = _internal.get(filename)
    if known is None:
        known = filename.startswith((PACKAGE, "<nkitools"))
        _internal[filename] = known
    return known


@dataclass(frozen=True)
class Site:
    """A place in the author's source."""

    file: str
    line: int
    column: int | None
    function: str


def author_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not nkitools' own, seen from the caller's ``depth``-th frame."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not (_internal[filename] if filename in _internal else is_internal(filename)):
            return frame
        frame = frame.f_back
    return None


def _column(code: CodeType, instruction: int) -> int | None:
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    return None if position is None or position[2] is None else position[2] + 1


class Sites:
    """The sites of one run, numbered in the order in which they were first met."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int, str, int], int] = {}
        self.all: list[Site] = []

    def current(self, depth: int = 2) -> int:
        """The number of the author's current site (-1 where there is none)."""
        frame = author_frame(depth)
        if frame is None:
            return -1
        code = frame.f_code
        key = (code.co_filename, code.co_firstlineno, code.co_name, frame.f_lasti)
        found = self._ids.get(key)
        if found is None:
            found = len(self.all)
            self._ids[key] = found
            self.all.append(Site(code.co_filename, frame.f_lineno, _column(code, frame.f_lasti), code.co_name))
        return found

    def __getitem__(self, number: int) -> Site:
        return self.all[number] if number >= 0 else Site("<unknown>", 0, None, "")
