"""The author's line: found once per instruction, cheaply, skipping nkitools' own frames."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType

from nkitools.record.bytecode import bound_name

_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether a source file belongs to nkitools itself (generated code included)."""
    known = _internal.get(filename)
    if known is None:
        known = filename.startswith((PACKAGE, "<nkitools"))
        _internal[filename] = known
    return known


# As code objects spell it, which is not always how the file system does.
PACKAGE = os.path.dirname(os.path.dirname(is_internal.__code__.co_filename)) + os.sep


@dataclass(frozen=True)
class Site:
    """A place in the author's source.

    ``bound`` is the name that the expression's value is assigned to, or the counter of the loop that begins there; ''
    where it goes elsewhere.
    """

    file: str
    line: int
    column: int | None
    function: str
    bound: str = ""


UNKNOWN = Site("<unknown>", 0, None, "")


def author_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not nkitools' own, seen from the caller's ``depth``-th frame."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not (_internal[filename] if filename in _internal else is_internal(filename)):
            return frame
        frame = frame.f_back
    return None


def site_at(code: CodeType, line: int, instruction: int) -> Site:
    """The site of a code object's instruction."""
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    column = None if position is None or position[2] is None else position[2] + 1
    return Site(code.co_filename, line, column, code.co_name, bound_name(code, instruction))


class Sites:
    """The sites of one run, numbered in the order in which they were first met."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, int], int] = {}
        self._codes: list[CodeType] = []  # kept, so that their ids stay theirs
        self.all: list[Site] = []

    def current(self, depth: int = 2) -> int:
        """The number of the author's current site (-1 where there is none)."""
        frame = sys._getframe(depth - 1)
        code = frame.f_code
        if _internal.get(code.co_filename, True):
            found_frame = author_frame(depth)
            if found_frame is None:
                return -1
            frame, code = found_frame, found_frame.f_code
        key = (id(code), frame.f_lasti)
        found = self._ids.get(key)
        if found is None:
            found = len(self.all)
            self._ids[key] = found
            self._codes.append(code)
            self.all.append(site_at(code, frame.f_lineno, frame.f_lasti))
        return found

    def __getitem__(self, number: int) -> Site:
        return self.all[number] if number >= 0 else UNKNOWN
