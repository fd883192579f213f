"""Loop counters: from the author's frames while they stand, from the record once they are history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType, FrameType

import numpy as np

from nkitools.authors_code.instructions import loops_around
from nkitools.authors_code.positions import line_of
from nkitools.facts.kept import Kept
from nkitools.facts.light_classes import NamedTuple, dataclass
from nkitools.record.source_sites import LAUNCH, is_internal

_HAS_OWN_VARIABLES = 1  # CO_OPTIMIZED: the flag of a function's code; a module's variables are the dict itself
_places = Kept[tuple[int, int], "Place"](
    "places in codes, which stay with them", 4096, "lines that print or that findings are about"
)
_DICTS = frozenset({"locals", "vars"})  # functions that return the dict


def author_frames(frame: FrameType | None) -> list[FrameType]:
    """Return the kernel's frames from ``frame`` outward to the launch; [] if ``frame`` is not a kernel's."""
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
    """Return names for counters (function and name of each), outermost first: ``function.name`` if an inner counter has
    the same name.
    """
    inner = {name: index for index, (_, name) in enumerate(found)}
    return tuple(name if inner[name] == index else f"{function}.{name}" for index, (function, name) in enumerate(found))


def counters(frame: FrameType | None, variables: Mapping[str, object] | None = None) -> dict[str, int]:
    """Return names and values of the counters of the for loops around ``frame``'s line and its callers', outermost
    first.

    ``variables``: those of ``frame``, if the caller has them. A caller's counter that has the name of an inner one is
    called ``function.name``.
    """
    if frame is None:
        return {}
    if not is_internal(frame.f_code.co_filename):
        loops = place_of(frame).counters(frame, variables)
        if loops is not None:
            return loops
    found: list[tuple[str, str]] = []
    numbers: list[int] = []
    for each in reversed(author_frames(frame)):
        place = place_of(each)
        for name, value in zip(place.names, place.values(each), strict=True):
            # Nothing else is asked for its number: a tensor would refuse to be one.
            if isinstance(value, (int, np.integer)):
                found.append((each.f_code.co_name, name))
                numbers.append(int(value))
    return dict(zip(qualified(found), numbers, strict=True))


class Place(NamedTuple):
    """A place in an author's code, and the names of the counters of the loops around it, outermost first."""

    code: CodeType
    names: tuple[str, ...]
    asks: bool  # the function asks for the dict of its variables

    def values(self, frame: FrameType, variables: Mapping[str, object] | None = None) -> list[object]:
        """Return the values of the counters in a frame at this place, None for a counter without a value.

        Until Python 3.13 reading a frame's variables makes a dict that lives as long as the frame, and with it the
        memory of every tensor that the function has given up since. So the dict is emptied, unless the function itself
        reads it.
        """
        if not self.names:
            return []
        if variables is None:
            variables = frame.f_locals
        values = [variables.get(name) for name in self.names]
        if variables.__class__ is dict and not self.asks:
            variables.clear()
        return values

    def counters(self, frame: FrameType, variables: Mapping[str, object] | None = None) -> dict[str, int] | None:
        """Return the counters by their names; None if one is no integer, or if ``frame`` is not the kernel's own."""
        outer = frame.f_back
        if outer is None or outer.f_globals.get("__name__") != LAUNCH:
            return None
        values = self.values(frame, variables)
        for value in values:
            if value.__class__ is not int:
                return None
        loops = dict(zip(self.names, values, strict=True))
        return loops if len(loops) == len(values) else None  # type: ignore[return-value]


def place_of(frame: FrameType) -> Place:
    """Return the place in the code at which an author's frame is."""
    code, offset = frame.f_code, frame.f_lasti
    known = _places.get((id(code), offset))  # the code's hash would take longer than the rest
    if known is None:
        names = tuple(name for loop in loops_around(code, offset) for name in loop.names)
        has_own = bool(code.co_flags & _HAS_OWN_VARIABLES)
        known = _places[id(code), offset] = Place(code, names, not has_own or not _DICTS.isdisjoint(code.co_names))
    return known
