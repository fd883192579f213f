"""Known faults: codes of AWS's compiler and runtime, wrong results of chips, versions with a fault.

The table is ``known_faults.tsv``. A row has one of these kinds:

- the part of AWS's software that reports a code, a status or a message (``compiler, user error``, ``runtime status``);
- ``wrong result``, ``refusal``, ``crash``, ``hang``, ``slow``: what a form of code, or a version, leads to on hardware;
- ``AWS's simulator``: what that simulator computes otherwise than the chip;
- ``support``: which chip or dialect a version is for.

``package``, ``from`` and ``below`` are the versions concerned, as pip has them: the first that is known to have the
fault, and the first that is not. Empty ``chips`` are all of them. Each row was read at its ``address``: a page of AWS's
documentation (SDK 2.33 and earlier), ``owner/repository#thread``, ``owner/repository path``, or a page of this
project; where a code has none it is known from public reports. The module needs the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nkitools.facts.supported_versions import release
from nkitools.facts.tsv import rows_of

_TABLE = Path(__file__).with_name("known_faults.tsv")
_PAGES = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
# The codes of the compiler begin with the part that reports them; E: the author's error, I: an internal one.
_COMPILER = re.compile(r"\b(?:NCC_)?([EI][A-Z]{3}\d{3})\b|\b(NCC_[A-Z]{3,5}\d{3})\b")
_LEGACY = re.compile(r"\b(TEN404|GCA035|NLA001|F134|F137)\b")
_STATUS = re.compile(r"\bNRT_[A-Z_]+\b")
# A status by its number alone, as messages have it: status=1006, status code 4, NERR 5, NRT Error (101).
_NUMBER = re.compile(
    r"(?:(?<!exit )\bstatus(?:[ _]code)?|\bNERR|\berror[ _]code|\bNRT[ _]Error)\s*[:=]?\s*\(?(\d+)\b", re.IGNORECASE
)
_ISSUE = re.compile(r"https?://github\.com/([^/]+/[^/]+)/(?:issues|pull)/(\d+)\S*")
_THREAD = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
_FILE = re.compile(r"([\w.-]+/[\w.-]+) (\S+)")
# What follows from an earlier failure, or names no cause.
_LATER = ("NRT_FAILURE", "NRT_EXEC_UNIT_UNRECOVERABLE", "F134", "(FATAL-RT-UNDEFINED-STATE) …")
# Statuses after which nothing that the process runs later says anything (nrt_status; the guide to nrt_async).
_TERMINAL = ("5", "101", "1200", "1201", "1202", "1203", "1204", "1205")
# Messages of frameworks that name a cause.
_CAUSES = ("libnrt", "forked", "Detected")
_OF_CODES = ("compile", "runtime", "framework")  # how kinds of codes begin


class Fault(NamedTuple):
    """One row of the table."""

    kind: str
    """See the module's docstring."""
    name: str
    """The code, the name of a status, the text of a message; else a name of this project's."""
    number: str
    """The number of a status; empty for others."""
    pattern: str
    """The regular expression that finds a message in a log; empty for others."""
    meaning: str
    """What the code says, or what goes wrong."""
    cause: str
    """What mostly causes the code, and what helps; empty where nothing is known."""
    write: str
    """What to write or to do instead; empty where nothing is known."""
    package: str
    """The distribution whose versions are concerned, as pip has it; empty where versions do not matter."""
    since: str
    """The first version that is known to have the fault; empty where it is not known."""
    below: str
    """The first version that is not known to have the fault; empty where all later ones are concerned."""
    chips: tuple[str, ...]
    """The chips concerned; empty for all."""
    address: str
    """Where the fault was read, relative to AWS's documentation or GitHub; empty where there is no one place."""
    rules: tuple[str, ...]
    """The rules of nkitools that find the cause before, in simulation."""

    @property
    def is_code(self) -> bool:
        """Return whether the row is about a code, a status or a message, which logs may have."""
        return self.kind.startswith(_OF_CODES)

    @property
    def title(self) -> str:
        """The name, with the number of a status."""
        return f"{self.name} ({self.number})" if self.number else self.name

    @property
    def what(self) -> str:
        """The meaning, after the name of a code."""
        return f"{self.name}: {self.meaning}" if self.is_code else self.meaning

    @property
    def versions(self) -> str:
        """The affected versions, in words; '' if versions do not matter."""
        words = [self.package] if self.package else []
        words += [f"from {self.since}"] if self.since else []
        words += [f"below {self.below}"] if self.below else []
        return " ".join(words)

    @property
    def links(self) -> dict[str, str]:
        """The places of the address, each with the link that leads there; empty for a place without one."""
        return {place: _link(place) for place in self.address.split("; ") if place}

    @property
    def source(self) -> str:
        """The address as a browser takes it."""
        return "; ".join(link or place for place, link in self.links.items())

    def sentence(self) -> str:
        """Return name, meaning, cause, remedy and versions in one line."""
        parts = [f"{self.title}: {self.meaning}."]
        parts += [f"Likely: {self.cause}."] if self.cause else []
        parts += [f"Do: {self.write.removesuffix('.')}."] if self.write else []
        parts += [f"Versions: {self.versions}."] if self.versions else []
        parts += [f"Found before by {', '.join(self.rules)}."] if self.rules else []
        return " ".join(parts)

    def concerns(self, chips: Collection[str], version: str) -> bool:
        """Return whether the fault is one of a chip, by any of its names, and of a version of the package.

        Without ``chips`` the chip is unknown, and only what all chips have concerns it.
        """
        on_chip = not self.chips or not set(self.chips).isdisjoint(chips)
        number = release(version)
        return on_chip and number >= release(self.since) and not (self.below and number >= release(self.below))


def _link(place: str) -> str:
    if place.endswith(".html"):
        return _PAGES + place
    found = _THREAD.fullmatch(place) or _FILE.fullmatch(place)
    if found is None:
        return ""
    return f"https://github.com/{found[1]}/{'issues' if '#' in place else 'blob/HEAD'}/{found[2]}"


def _fault(*cells: str) -> Fault:
    *words, chips, address, rules = cells
    kind, name, number, pattern, meaning, cause, write, package, since, below = words
    found = Fault(kind, name, number, pattern, meaning, cause, write, package, since, below, (), address, ())
    return found._replace(chips=tuple(chips.split()), rules=tuple(rules.split()))


@cache
def faults() -> tuple[Fault, ...]:
    """Return the table."""
    return tuple(_fault(*row.values()) for row in rows_of(_TABLE))


def faults_of_versions(chip: str, version: Callable[[str], str | None]) -> Iterator[tuple[Fault, str]]:
    """Yield what is known of the installed versions on ``chip`` (empty: unknown), each with the version that is here.

    ``version`` returns the installed version of a distribution.
    """
    for fault in faults():
        here = version(fault.package) if fault.package else None
        if here is not None and fault.concerns((chip,) if chip else (), here):
            yield fault, here


@cache
def _by_name() -> dict[str, Fault]:
    named = {fault.name: fault for fault in faults()}
    return {**{fault.number: fault for fault in faults() if fault.number}, **named}


def fault_of_form(name: str) -> Fault:
    """Return the row of a form of code, which the table must have."""
    return _by_name()[name]


def fault_named(name: str) -> Fault | None:
    """Return the row of a name: NCC_EBVF030 or EBVF030, NRT_EXEC_OOB or 1006, TEN404, a message's text, a thread."""
    asked = _ISSUE.sub(r"\1#\2", name.strip().strip("[]"))
    compiler = _COMPILER.fullmatch(asked.upper())
    if compiler is not None:
        code = compiler[2] or f"NCC_{compiler[1]}"
        return _by_name().get(code) or _unlisted(code)
    known = _by_name().get(asked) or _by_name().get(asked.upper()) or _by_name().get(asked.lower())
    if known is not None:
        return known
    number = re.fullmatch(r"NRT[ _]?(?:status )?(\d+)", asked, re.I)
    if number is not None:
        return _by_name().get(number[1])
    if _THREAD.fullmatch(asked):
        return next((fault for fault in faults() if asked in fault.links), None)
    return next((fault for fault in faults() if fault.pattern and re.search(fault.pattern, asked)), None)


def codes_in(log: str) -> list[Fault]:
    """Return the codes that a log names: what says a cause first, in the order of the log; each code once.

    A line that only says that a compiler or a launch failed comes after the codes that say why.
    """
    places: dict[Fault, int] = {}
    for place, fault in sorted(_found(log), key=lambda each: each[0]):
        places.setdefault(fault, place)
    return sorted(places, key=lambda fault: (_wraps(fault), places[fault]))


def is_terminal(log: str) -> bool:
    """Return whether a log has a status after which the process must end."""
    return any(fault.number in _TERMINAL for fault in codes_in(log))


def _found(log: str) -> list[tuple[int, Fault]]:
    names = [(match.start(), fault_named(match[0])) for match in _COMPILER.finditer(log)]
    names += [(match.start(), _by_name()[match[0]]) for match in _LEGACY.finditer(log)]
    names += [(match.start(), _by_name().get(match[0])) for match in _STATUS.finditer(log)]
    names += [(match.start(), _by_name().get(match[1])) for match in _NUMBER.finditer(log)]
    for fault in faults():
        if fault.pattern:
            names += [(match.start(), fault) for match in re.finditer(fault.pattern, log)]
    return [(place, fault) for place, fault in names if fault is not None and fault.number != "0"]


def _wraps(fault: Fault) -> int:
    """Return 0 for what names a cause, 1 for a status that follows from another, 2 for what reports a failure alone."""
    if fault.kind in ("framework message", "compile cache message") or fault.name == "exit code 70":
        return 0 if any(word in fault.name for word in _CAUSES) else 2
    return 1 if fault.name in _LATER else 0


def _unlisted(code: str) -> Fault | None:
    """Return the meaning of the letters of a compiler's code that is not in the table; None if it is no such code."""
    if not code.startswith(("NCC_E", "NCC_I")):
        return None
    kind, meaning = ("user error", "an error of the kernel or graph, by its letter E")
    if code[4] == "I":
        kind, meaning = ("internal error", "an error inside the compiler, by its letter I")
    kin = [f"{each.name}: {each.meaning}" for each in faults() if each.name[:-3] == code[:-3]]
    cause = "the text behind the code, in log-neuron-cc.txt, says more; the code stands in no list of nkitools"
    cause += f". Codes of the same part: {'; '.join(kin[:3])}" if kin else ""
    page = f"compiler/error-codes/{code[4:]}.html" if code[4] == "E" else ""
    return Fault(f"compiler, {kind}", code, "", "", meaning, cause, "", "", "", "", (), page, ())
