"""Loop counters: from the author's frames while they stand, from the record once they are history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType

import numpy as np

from nkitools.authors_code.instructions import loops_around
from nkitools.authors_code.positions import line_of
from nkitools.record.source_sites import LAUNCH, is_internal

_HAS_OWN_VARIABLES = 1  # CO_OPTIMIZED: the flag of a function's code; a module's variables are the dict itself
_DICTS = frozenset({"locals", "vars"})  # functions that return the dict


def author_frames(frame: FrameType | None) -> list[FrameType]:
    """Return the kernel's frames from ``frame`` outward to the launch; none where ``frame`` is not a kernel's."""
    found: list[FrameType] = []
    while frame is not None:
        if frame.f_globals.get("__name__") == LAUNCH:
            return found
        if not is_internal(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return []


@dataclass(frozen=True)
class Moment:
    """When an instruction was issued, as the author's frames say it."""

    loops: dict[str, int]  # counters of the for loops around, outermost first
    callers: tuple[tuple[str, int], ...]  # file and line of the calls around, innermost first


def moment_of(frame: FrameType | None) -> Moment:
    """Return the moment at which ``frame`` stands."""
    outer = author_frames(frame)[1:]
    return Moment(counters(frame), tuple((each.f_code.co_filename, line_of(each)) for each in outer))


def qualified(found: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return names for counters (function and name of each), outermost first: ``function.name`` where an inner one
    has the name.
    """
    inner = {name: index for index, (_, name) in enumerate(found)}
    return tuple(name if inner[name] == index else f"{function}.{name}" for index, (function, name) in enumerate(found))


def counters(frame: FrameType | None) -> dict[str, int]:
    """Counter names and values of the for loops around ``frame``'s line and around its callers', outermost first.

    Where a caller's counter has the name of an inner one, it is shown as ``function.name``.
    """
    found: list[tuple[str, str]] = []
    numbers: list[int] = []
    for each in reversed(author_frames(frame)):
        names = [name for loop in loops_around(each.f_code, each.f_lasti) for name in loop.names]
        for name, value in zip(names, _values_of(each, names), strict=True):
            # Nothing else is asked for its number: a tensor would refuse to be one.
            if isinstance(value, (int, np.integer)):
                found.append((each.f_code.co_name, name))
                numbers.append(int(value))
    return dict(zip(qualified(found), numbers, strict=True))


def _values_of(frame: FrameType, names: list[str]) -> list[object]:
    """Return the values of a frame's variables, None for those without any.

    Until Python 3.13 a function's frame keeps the dict of its variables that it is asked for, and with it the memory of
    every tensor that the function has given up since. The dict is emptied, unless the function asks for it itself.
    """
    if not names:
        return []
    variables = frame.f_locals
    values = [variables.get(name) for name in names]
    code = frame.f_code
    if code.co_flags & _HAS_OWN_VARIABLES and type(variables) is dict and _DICTS.isdisjoint(code.co_names):
        variables.clear()
    return values
