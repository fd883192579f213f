"""The author's line: found once per instruction, cheaply, skipping nkitools' own frames."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from nkitools.authors_code.instructions import beginning, bound_name, is_returned, returned_element, unpacked_name
from nkitools.authors_code.positions import line_at, position_of
from nkitools.authors_code.source_text import shown_text
from nkitools.facts.kept import Kept, on_forget
from nkitools.facts.light_classes import dataclass, replace
from nkitools.rules.finding import is_own

if TYPE_CHECKING:
    from nkitools.record.rows import Planned

_MOST_LINES = 1024  # sites, tiles and plans: of a kernel that makes its code or its shapes anew in each run

_internal = Kept[str, bool]("whether files are of nkitools itself", 16_384, "a large environment's files")


known_internal = _internal.get


def is_internal(filename: str) -> bool:
    """Return whether a source file belongs to nkitools itself (generated code included)."""
    known = _internal.get(filename)
    if known is None:
        known = _internal[filename] = is_own(filename)
    return known


LAUNCH = "nkitools.launch.programs"  # the frames outside of it are not the kernel's


@dataclass(frozen=True)
class Site:
    """A place in the author's source.

    ``bound`` is the name that the expression's value is assigned to, or the counter of the loop that begins there; ''
    otherwise. ``returned``: the function returns the value; ``element``: the function returns a tuple or list, and the
    value is the element with this number.
    """

    file: str
    line: int
    column: int | None
    function: str
    bound: str = ""
    returned: bool = False
    element: int | None = None

    @property
    def is_handed_on(self) -> bool:
        """Return whether the function returns the value."""
        return self.returned or self.element is not None


UNKNOWN = Site("<unknown>", 0, None, "")


def author_frame(depth: int = 1) -> FrameType | None:
    """Return the innermost frame that is not nkitools' own, seen from the caller's ``depth``-th frame."""
    frame: FrameType | None = sys._getframe(depth)
    known = _internal.get
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = known(filename)
        if not (is_internal(filename) if internal is None else internal):
            return frame
        frame = frame.f_back
    return None


def caller_of(frame: FrameType) -> FrameType | None:
    """Return the author's frame that called ``frame``; None if the launch called it."""
    outer = frame.f_back
    while outer is not None and outer.f_globals.get("__name__") != LAUNCH:
        if not is_internal(outer.f_code.co_filename):
            return outer
        outer = outer.f_back
    return None


def site_at(code: CodeType, line: int | None, instruction: int) -> Site:
    """Return the site of a code object's instruction; ``line`` is None if Python has no line for it."""
    return _site_in(code.co_filename, code, line_at(code, instruction, line), instruction)


@lru_cache(4096)
def _site_in(file: str, code: CodeType, line: int, instruction: int) -> Site:
    # The same code in two files is equal to Python.
    column = position_of(code, instruction)[1]
    return Site(
        file,
        line,
        None if column is None else column + 1,
        code.co_name,
        bound_name(code, instruction),
        is_returned(code, instruction),
        returned_element(code, instruction),
    )


@lru_cache(4096)
def _named(site: Site, name: str) -> Site:
    return replace(site, bound=name)


class Sites:
    """The sites of one run, numbered in the order in which they were first met."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], int] = {}  # by code and instruction in it, of the author alone
        self._elements: dict[tuple[int, int, int], int] = {}
        self._codes: list[CodeType] = []  # kept, so that their ids stay theirs
        self.all: list[Site] = []

    def current(self, depth: int = 2) -> int:
        """Return the number of the author's current site; -1 if there is none."""
        frame: FrameType | None = sys._getframe(depth - 1)
        known = _internal.get
        while frame is not None:  # as in `author_frame`, whose call would take a third of the time
            code = frame.f_code
            filename = code.co_filename
            internal = known(filename)
            if not (is_internal(filename) if internal is None else internal):
                number = self.known.get((id(code), frame.f_lasti))
                return self._number(frame, code) if number is None else number
            frame = frame.f_back
        return -1

    def naming(self, depth: int = 2) -> int:
        """Return the site whose assignment names the object that is being made.

        That is the current site, or the caller's if a helper only returns the object, alone or in a tuple.
        """
        number = self.current(depth + 1)
        if number < 0 or not (self.all[number].returned or self.all[number].element is not None):
            return number
        frame, found, element = author_frame(depth), number, None
        while frame is not None and (
            self.all[found].returned or (element is None and self.all[found].element is not None)
        ):
            element = self.all[found].element if element is None else element
            frame = caller_of(frame)
            found = found if frame is None else self._number(frame, frame.f_code)
        if element is not None and frame is not None:
            found = self._element(frame, found, element)
        return found if self.all[found].bound else number

    def _element(self, frame: FrameType, number: int, element: int) -> int:
        """Return the site that names an element of a call's result; the call's site if the element gets no name."""
        name = unpacked_name(frame.f_code, frame.f_lasti, element)
        if not name:
            return number
        key = (id(frame.f_code), frame.f_lasti, element)
        found = self._elements.get(key)
        if found is None:
            found = self._elements[key] = len(self.all)
            self.all.append(_named(self.all[number], name))
        return found

    def _number(self, frame: FrameType, code: CodeType) -> int:
        key = (id(code), frame.f_lasti)
        found = self.known.get(key)
        if found is None:
            begin = beginning(code, frame.f_lasti)
            found = self.known.get((id(code), begin))
            if found is None:
                found = len(self.all)
                self._codes.append(code)
                self.all.append(site_at(code, frame.f_lineno, begin))
            self.known[key] = self.known[id(code), begin] = found
        return found

    def __getitem__(self, number: int) -> Site:
        return self.all[number] if number >= 0 else UNKNOWN


class KernelLines:
    """Holds what the lines of a kernel have made and issued in its earlier runs: sites, forms of tiles, plans.

    A run takes the lines of its kernel, and gives them back if it has reported nothing: a line that breaks a rule is
    looked at in every run.
    """

    def __init__(self) -> None:
        self.sites = Sites()
        self.calls: dict[Any, Any] = {}  # tiles that lines have made, see `nkitools.language.repeated_tiles`
        self.given: dict[Any, Any] = {}  # the facts about arguments that records keep
        self.tiles: dict[int, Any] = {}  # by place in the author's code the tile that it has made last
        # By place in the author's code what it has issued last (`nkitools.issue.fast_path`), and the plans in that.
        self.issued: dict[int, tuple[Any, ...]] = {}
        self.plans: dict[int, Planned] = {}

    def keep_issued(self, issued: dict[int, tuple[Any, ...]], plans: dict[int, Planned]) -> None:
        """Keep what the lines have issued in a run."""
        if len(self.issued) < _MOST_LINES and len(self.plans) < _MOST_LINES:
            self.issued.update(issued)
            self.plans.update(plans)


_kept: WeakKeyDictionary[FunctionType, dict[Hashable, KernelLines]] = WeakKeyDictionary()
"""By the functions of kernels, and by the settings of runs."""


def _forget() -> None:
    for lines in _kept.values():
        lines.clear()


on_forget(_forget)


def lines_of(function: FunctionType | None) -> dict[Hashable, KernelLines]:
    """Return the lines of a kernel by settings, without those that a run has; of no function none is kept."""
    return {} if function is None else _kept.setdefault(function, {})


def give_back(lines: KernelLines, kept: dict[Hashable, KernelLines], settings: Hashable) -> None:
    """Keep the lines of a run that has reported nothing."""
    if max(len(lines.sites.all), len(lines.calls), len(lines.plans), len(lines.given)) < _MOST_LINES:
        kept[settings] = lines


def source_texts(files: Iterable[str]) -> dict[str, str]:
    """Return the text of each of ``files`` as it was when the code was loaded, without those that cannot be read."""
    found = {file: shown_text(file) for file in sorted(set(files))}
    return {file: text for file, text in found.items() if text}


def entries_of(error: BaseException) -> list[TracebackType]:
    """Return the entries of an error's traceback, the outermost first."""
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def traceback_of(entries: Iterable[TracebackType]) -> TracebackType | None:
    """Return a traceback made of some entries of another one, outermost first; None for no entries."""
    made: TracebackType | None = None
    for each in reversed(list(entries)):
        line = line_at(each.tb_frame.f_code, each.tb_lasti, each.tb_lineno)
        made = TracebackType(made, each.tb_frame, each.tb_lasti, line)
    return made
