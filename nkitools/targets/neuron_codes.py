"""The codes and messages of AWS's compiler, runtime and frameworks: what each means, and where a log has them.

The table is ``neuron_codes.tsv``. Sources: AWS Neuron documentation of SDK 2.33 and 2.32 (runtime statuses, compiler
error codes); codes that stand in no documentation are from public reports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nkitools.facts.tsv import rows_of

_TABLE = Path(__file__).with_name("neuron_codes.tsv")
PAGES = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
# The codes of the compiler begin with the part that reports them; E: the author's error, I: an internal one.
_COMPILER = re.compile(r"\b(?:NCC_)?([EI][A-Z]{3}\d{3})\b|\b(NCC_[A-Z]{3}\d{3})\b")
_LEGACY = re.compile(r"\b(TEN404|GCA035|NLA001|F134|F137)\b")
_STATUS = re.compile(r"\bNRT_[A-Z_]+\b")
# A status by its number alone, as messages have it: status=1006, status code 4, NERR 5, NRT Error (101).
_NUMBER = re.compile(
    r"(?:(?<!exit )\bstatus(?:[ _]code)?|\bNERR|\berror[ _]code|\bNRT[ _]Error)\s*[:=]?\s*\(?(\d+)\b", re.IGNORECASE
)
# What follows from an earlier failure, or names no cause.
_LATER = ("NRT_FAILURE", "NRT_EXEC_UNIT_UNRECOVERABLE", "F134", "(FATAL-RT-UNDEFINED-STATE) …")
# Statuses after which nothing that the process runs later says anything (nrt_status; the guide to nrt_async).
_TERMINAL = ("5", "101", "1200", "1201", "1202", "1203", "1204", "1205")
# Messages of frameworks that name a cause.
_CAUSES = ("libnrt", "forked", "Detected")


@dataclass(frozen=True)
class Code:
    """One code, status or message."""

    code: str
    """The code, the name of a status, or the text of a message."""
    number: str
    """The number of a status; empty for others."""
    pattern: str
    """The regular expression that finds a message in a log; empty for codes."""
    kind: str
    """The part of AWS's software that reports the code."""
    meaning: str
    """What the code says."""
    cause: str
    """What mostly causes the code, and what helps; empty where nothing is known."""
    page: str
    """The page of AWS's documentation, or the place of a report; empty where there is none."""
    rules: tuple[str, ...]
    """The rules of nkitools that find the cause before, in simulation."""

    def name(self) -> str:
        """Return the code, with the number of a status."""
        return f"{self.code} ({self.number})" if self.number else self.code

    def sentence(self) -> str:
        """Return code, meaning and cause in one line."""
        found = f" Found before by {', '.join(self.rules)}." if self.rules else ""
        return f"{self.name()}: {self.meaning}.{f' Likely: {self.cause}.' if self.cause else ''}{found}"


@cache
def codes() -> tuple[Code, ...]:
    """Return the table."""
    return tuple(Code(**{**row, "rules": tuple(row["rules"].split())}) for row in rows_of(_TABLE))  # type: ignore[arg-type]


@cache
def _by_name() -> dict[str, Code]:
    named = {code.code: code for code in codes()}
    return {**{code.number: code for code in codes() if code.number}, **named}


def code_named(name: str) -> Code | None:
    """Return the code of a name: NCC_EBVF030 or EBVF030, NRT_EXEC_OOB or 1006, TEN404, or a message's text."""
    asked = name.strip().strip("[]")
    compiler = _COMPILER.fullmatch(asked.upper())
    if compiler is not None:
        code = compiler[2] or f"NCC_{compiler[1]}"
        return _by_name().get(code) or _unlisted(code)
    known = _by_name().get(asked) or _by_name().get(asked.upper())
    if known is not None:
        return known
    number = re.fullmatch(r"NRT[ _]?(?:status )?(\d+)", asked, re.I)
    if number is not None:
        return _by_name().get(number[1])
    return next((code for code in codes() if code.pattern and re.search(code.pattern, asked)), None)


def codes_in(log: str) -> list[Code]:
    """Return the codes that a log names: what says a cause first, in the order of the log; each code once.

    A line that only says that a compiler or a launch failed comes after the codes that say why.
    """
    places: dict[Code, int] = {}
    for place, code in sorted(_found(log), key=lambda each: each[0]):
        places.setdefault(code, place)
    return sorted(places, key=lambda code: (_wraps(code), places[code]))


def is_terminal(log: str) -> bool:
    """Return whether a log has a status after which the process must end."""
    return any(code.number in _TERMINAL for code in codes_in(log))


def _found(log: str) -> list[tuple[int, Code]]:
    names = [(match.start(), code_named(match[0])) for match in _COMPILER.finditer(log)]
    names += [(match.start(), _by_name()[match[0]]) for match in _LEGACY.finditer(log)]
    names += [(match.start(), _by_name().get(match[0])) for match in _STATUS.finditer(log)]
    names += [(match.start(), _by_name().get(match[1])) for match in _NUMBER.finditer(log)]
    for code in codes():
        if code.pattern:
            names += [(match.start(), code) for match in re.finditer(code.pattern, log)]
    return [(place, code) for place, code in names if code is not None and code.number != "0"]


def _wraps(code: Code) -> int:
    """Return 0 for what names a cause, 1 for a status that follows from another, 2 for what reports a failure alone."""
    if code.kind in ("framework message", "compile cache message") or code.code == "exit code 70":
        return 0 if any(word in code.code for word in _CAUSES) else 2
    return 1 if code.code in _LATER else 0


def _unlisted(code: str) -> Code | None:
    """Return what the letters of a compiler's code say, where the table does not have the code."""
    if not code.startswith(("NCC_E", "NCC_I")):
        return None
    kind, meaning = ("user error", "an error of the kernel or graph, by its letter E")
    if code[4] == "I":
        kind, meaning = ("internal error", "an error inside the compiler, by its letter I")
    cause = "the text behind the code, in log-neuron-cc.txt, says more; the code stands in no list of nkitools"
    page = f"compiler/error-codes/{code[4:]}.html" if code[4] == "E" else ""
    return Code(code, "", "", f"compiler, {kind}", meaning, cause, page, ())
