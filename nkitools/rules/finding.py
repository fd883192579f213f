"""Findings, and the errors that carry them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any, NoReturn

from nkitools.authors_code.positions import line_of
from nkitools.facts.light_classes import dataclass, field, replace
from nkitools.rules.catalogue import RULES, Rule
from nkitools.rules.shown_text import shown, shown_file, shown_line

# Where a message leaves the author's name of a storage to the reporter, with an ` of` that goes where the name is
# unknown, as it is outside of a run; and with the indices of elements, which belong to the name.
UNNAMED = "( of)? \x00(\\d+)\x00(\\[[^]]*\\])?"
# Where a remedy leaves the line that made a storage to the reporter.
MADE_AT = "\x01(\\d+)\x01"

Fact = int | float | str | tuple[int, ...] | tuple[str, ...]


class Facts(dict[str, Fact]):
    """Facts by name, which do not change."""

    def _refused(self, *args: Fact, **named: Fact) -> NoReturn:
        raise TypeError("the facts of a finding do not change")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from a plain dictionary: findings cross processes."""
        return Facts, (dict(self),)


# The sign of a picture that stands for elements of different kinds.
MIXED = "+"


@dataclass(frozen=True)
class Picture:
    """The elements of a tensor that a finding is about, in a few lines of signs.

    ``lines[i]`` shows the rows ``rows[i]`` (the first and the last one, of dimension 0); its signs share out the
    ``columns`` equally. ``rows`` is empty for a single row, a single column and a range of indices. ``across`` labels
    the horizontal axis (``columns``, ``elements``, ``rows``, ...), which begins at ``first``. ``meanings`` explains
    each sign; ``+`` is a mixture.
    """

    lines: tuple[str, ...]
    rows: tuple[tuple[int, int], ...]
    columns: int
    across: str
    meanings: tuple[tuple[str, str], ...]
    first: int = 0


@dataclass(frozen=True)
class Place:
    """One time of a finding that came several times: program, loop counters, and the message with its own numbers."""

    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict, hash=False)
    message: str = ""

    def text(self) -> str:
        """``program 0, 1, m=3``: what of these says anything."""
        program = [f"program {', '.join(map(str, self.program))}"] if any(self.program) else []
        return ", ".join([*program, *(f"{name}={value}" for name, value in self.loops.items())])


# Beyond so many times only the last place of a finding is kept.
MOST_PLACES = 3


@dataclass(frozen=True)
class Finding:
    """One broken rule: message, place and remedy.

    ``rule``: the id, ``NK103``. ``slug``: the rule's name. ``severity``: ``error``, ``warning`` or ``hint``. ``file``,
    ``line`` and ``function``: the author's. ``column``: None if it is unknown. ``program``: the program id in the
    launch grid, () without one. ``loops``: the counters of the enclosing loops by name, with their values at that
    moment. ``picture``: the elements that a data rule is about, or None. ``rank``: the communicating rank's number,
    None without ranks. ``facts``: the values in the message, by name (`nkitools.rules.facts`).

    One finding of a run stands for all repeats (`kind`), in a loop say, whose messages differ only in numbers:
    ``count`` is their number, ``places`` has the first three and ``last`` the last; () and None for a single time.
    """

    rule: str
    slug: str
    severity: str
    message: str
    file: str
    line: int
    remedy: str
    column: int | None = None
    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict, hash=False)
    function: str = ""
    picture: Picture | None = None
    rank: int | None = None
    facts: Mapping[str, Fact] = field(default_factory=Facts, hash=False)
    count: int = 1
    places: tuple[Place, ...] = ()
    last: Place | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", Facts(self.facts))

    @classmethod
    def of(
        cls,
        rule_id: str,
        message: str,
        place: tuple[str, int, str],
        *,
        remedy: str = "",
        severity: str = "",
        column: int | None = None,
        program: tuple[int, ...] = (),
        facts: Mapping[str, Fact] | None = None,
    ) -> Finding:
        """Return a finding at a place (file, line, function); an empty remedy or severity is the rule's own.

        KeyError if ``rule_id`` is no id of a rule.
        """
        rule, (file, line, function) = RULES[rule_id], place
        severity, remedy, facts = severity or rule.severity, remedy or rule.remedy, facts or {}
        about = {"function": function, "facts": facts}
        return cls(rule.id, rule.slug, severity, message, file, line, remedy, column, program, **about)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        place = f"{shown_file(self.file, whole=False)}:{self.line}"
        counters = "".join(f" {name}={value}" for name, value in self.loops.items())
        return shown_line(f"<Finding {self.rule} {self.severity} {place}{counters}: {self.message}{self.more()}>")

    def text(self) -> str:
        """Return the finding as compilers print them: ``path:line:col: NK103 message (and 7 more: i=1; i=2; ...)``.

        The column stands there if it is known, a severity below an error behind the rule (``NK703 (hint) message``),
        the rank behind the message. The remedy is left out.
        """
        column = f":{self.column}" if self.column is not None else ""
        rank = f" (rank {self.rank})" if self.rank is not None else ""
        severity = "" if self.severity == "error" else f" ({self.severity})"
        said = f"{self.rule}{severity} {self.message}{rank}{self.more()}"
        return shown(f"{shown_line(shown_file(self.file))}:{self.line}{column}: {said}")

    def more(self) -> str:
        """Return `` (and 4,095 more: i=1; i=2; ...)``, with the places of up to two repeats; '' for a single time."""
        if self.count == 1:
            return ""
        others = [text for each in self.places[1:] if (text := each.text())]
        others += ["..."] if others and self.count > len(self.places) else []
        return f" (and {self.count - 1:,} more{': ' if others else ''}{'; '.join(others)})"

    @property
    def place(self) -> Place:
        """Return the program, the loop counters and the message of the first time that the finding came."""
        return Place(self.program, self.loops, self.message)

    def kind(self) -> tuple[Hashable, ...]:
        """Return the key that repeats of one finding share: the rule, the severity, the file, line, column and
        function, the rank, and the message without its numbers.

        Program and loop counters are not in the key.
        """
        place = self.file, self.line, self.column, self.function, self.rank
        return self.rule, self.severity, *place, self.message_without_numbers()

    def message_without_numbers(self) -> str:
        """Return the message with ``#`` in the place of each sequence of digits: ``1.5`` becomes ``#.#``."""
        return re.sub(r"\d+", "#", self.message)

    def again(self, other: Finding) -> Finding:
        """Return one finding for this one and ``other``, a later one of the same `kind`, which is not checked.

        Their counts are added; ``places`` has the first three of both, ``last`` the last place of ``other``.
        """
        places = (*(self.places or (self.place,)), *(other.places or (other.place,)))[:MOST_PLACES]
        return replace(self, count=self.count + other.count, places=places, last=other.last or other.place)

    def sentence(self) -> str:
        """Return the message with the rule, the remedy, and the place with loops, rank and program (but for program 0),
        in three lines, as an error shows them.
        """
        where = [f"at {shown_line(shown_file(self.file))}:{self.line}"]
        if self.loops:
            where.append("loop " + ", ".join(f"{name}={value}" for name, value in self.loops.items()))
        if self.rank is not None:
            where.append(f"rank {self.rank}")
        if any(self.program):
            where.append("program " + ", ".join(str(index) for index in self.program))
        return shown(f"{self.message} ({self.rule} {self.slug}).\n  {self.remedy}\n  {', '.join(where)}")


class KernelError(Exception):
    """Raised for a kernel that broke a rule; ``.finding`` says which, where and what to do.

    Where AWS documents a built-in exception for a rule, the error is also an IndexError, TypeError, ValueError or
    AssertionError.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.sentence())
        self.finding = finding

    def __reduce__(self) -> tuple[Any, ...]:
        """Made again from its finding: exceptions cross processes, in pytest-xdist and multiprocessing."""
        return type(self), (self.finding,), self.__dict__


class NotModelled(KernelError):
    """Raised for something that this version does not model, or for which a package or a device is missing (NK607).

    Raised at every rule level.
    """


class KernelAssertionError(KernelError, AssertionError):
    """A KernelError where AWS documents an AssertionError."""


class KernelIndexError(KernelError, IndexError):
    """A KernelError where AWS documents an IndexError."""


class KernelTypeError(KernelError, TypeError):
    """A KernelError where AWS documents a TypeError."""


class KernelValueError(KernelError, ValueError):
    """A KernelError where AWS documents a ValueError."""


class KernelUseError(KernelTypeError, KernelValueError):
    """A KernelError where AWS documents a TypeError for some cases and a ValueError for others.

    NK602: registers and tensors in Python's control flow; NK609: forms of arguments and their values.
    """


_ERRORS: dict[str, type[KernelError]] = {
    kind.__bases__[1].__name__: kind
    for kind in (KernelAssertionError, KernelIndexError, KernelTypeError, KernelValueError)
}
_ERRORS["TypeError, ValueError"] = KernelUseError


def error_class(rule: Rule) -> type[KernelError]:
    """Return the exception class of a rule: ``NotModelled`` for NK607, else also the built-in that AWS documents."""
    if rule.id == "NK607":
        return NotModelled
    return _ERRORS.get(rule.builtin, KernelError)


def is_raised(severity: str, level: str) -> bool:
    """Return whether a finding of that severity is raised at that rule level."""
    return (level == "strict" and severity == "warning") or (level in ("error", "strict") and severity == "error")


def error_of(finding: Finding) -> KernelError:
    """Return the exception that carries ``finding``."""
    return error_class(RULES[finding.rule])(finding)


# Draws the elements that a finding is about; called only where the picture is shown.
Drawing = Callable[[], Picture]
Reporter = Callable[[Rule, str, bool, Sequence[Any], str, Drawing | None, Mapping[str, Any]], bool]
NO_FACTS: Mapping[str, Any] = Facts()
REPORTER: ContextVar[Reporter | None] = ContextVar("nkitools_reporter", default=None)


# As code objects spell it, which is not always how the file system does.
_PACKAGE = os.path.dirname(os.path.dirname(error_of.__code__.co_filename)) + os.sep
_EXAMPLES = _PACKAGE + "examples" + os.sep  # kernels like an author's


def is_own(filename: str) -> bool:
    """Return whether a source file belongs to nkitools itself (generated code included, the example kernels not)."""
    return filename.startswith((_PACKAGE, "<nkitools")) and not filename.startswith(_EXAMPLES)


def authors_frame() -> FrameType:
    """Return the innermost frame that is neither nkitools' nor the import system's."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        filename = frame.f_code.co_filename
        if not (is_own(filename) or filename.startswith("<frozen importlib")):
            break
        frame = frame.f_back
    return frame


def finding_here(rule: Rule, message: str, remedy: str, facts: Mapping[str, Any] = NO_FACTS) -> Finding:
    """Return a finding at the author's current line, seen from outside of a run: no names, no counters, no program."""
    frame = authors_frame()
    place = (frame.f_code.co_filename, line_of(frame), frame.f_code.co_name)
    said, remedy = (
        re.sub(MADE_AT, "", re.sub(UNNAMED, lambda match: f" {match[3]}" if match[3] else "", each))
        for each in (message, remedy)
    )
    known = {name: each for name, each in facts.items() if not (isinstance(each, str) and "\x00" in each)}
    return Finding.of(rule.id, said, place, remedy=remedy, severity=rule.severity, facts=known)


class StopRun(BaseException):
    """Ends a run that collects its findings, where nothing further can be computed."""


def report(
    rule_id: str,
    message: str,
    *,
    about: Sequence[Any] = (),
    remedy: str = "",
    fatal: bool = False,
    picture: Drawing | None = None,
    severity: str = "",
    facts: Mapping[str, Any] = NO_FACTS,
) -> bool:
    """Report that ``rule_id`` is broken; return whether a run has recorded it.

    Raises under ``rules="error"``, collects under ``"report"``, does nothing under ``"off"``. ``fatal`` marks what
    cannot be computed at all: it ends the run at every level. ``about`` are the tensors concerned (to name them).
    ``picture`` draws the elements concerned; ``severity`` is one below the rule's, where the case is less grave.
    ``facts`` are values that the message has, by name: those that the rule declares; a run adds those of ``about``.
    Outside of a run errors are raised, and warnings and hints are dropped.
    """
    rule = replace(RULES[rule_id], severity=severity) if severity else RULES[rule_id]
    reporter = REPORTER.get()
    if reporter is not None:
        return reporter(rule, message, fatal, about, remedy or rule.remedy, picture, facts)
    if fatal or rule.severity == "error":
        raise error_of(finding_here(rule, message, remedy, facts)) from None
    return False


def refuse(
    rule_id: str,
    message: str,
    *,
    about: Sequence[Any] = (),
    remedy: str = "",
    picture: Drawing | None = None,
    facts: Mapping[str, Any] = NO_FACTS,
) -> NoReturn:
    """Report what cannot be computed; never returns."""
    report(rule_id, message, about=about, remedy=remedy, fatal=True, picture=picture, facts=facts)
    raise AssertionError("a fatal report returned")


def not_modelled(message: str, *, remedy: str = "") -> NoReturn:
    """Refuse by name what this version does not model (NK607)."""
    refuse("NK607", message, remedy=remedy)
