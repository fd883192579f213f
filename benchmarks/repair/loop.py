"""A repair loop that knows structured answers alone: findings with their rules, and the edits that they suggest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nkitools.edits.source import Edit, Text
from nkitools.lint.engine import lint
from nkitools.serve.child_process import Ended, call
from nkitools.serve.simulated_file import compared
from nkitools.suggestions.lint_interface import Dialects
from nkitools.suggestions.plain import suggestions_as_plain

Plain = dict[str, Any]
_ROUNDS = 5
_SECONDS = 30.0
_ORDER = {"error": 0, "warning": 1, "hint": 2}


@dataclass(frozen=True)
class Verdict:
    """The answers about one text: whether it agrees with its reference, its errors, and all findings."""

    passes: bool
    errors: int
    crashed: bool
    findings: tuple[Plain, ...]

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The order of verdicts: the better one is smaller."""
        return (not self.passes, self.crashed, self.errors)


@dataclass(frozen=True)
class Repair:
    """How the loop ended for one case."""

    name: str
    before: Verdict
    after: Verdict
    applied: tuple[str, ...]  # rule and title of each edit, in order
    text: str

    @property
    def is_mended(self) -> bool:
        """Return whether the text passes at the end, and did not at the beginning."""
        return self.after.passes and not self.before.passes

    @property
    def is_worse(self) -> bool:
        """Return whether the text is worse at the end."""
        return self.after.rank > self.before.rank

    @property
    def has_remedy(self) -> bool:
        """Return whether a finding of the text as it was suggests an edit."""
        return any(each["suggestions"] for each in self.before.findings)


def repaired(name: str, text: str, folder: Path) -> Repair:
    """Return how far suggested edits mend a text with ``kernel``, ``inputs``, ``reference`` and ``tolerance``."""
    first = verdict = judged(text, name, folder)
    applied: list[str] = []
    seen = {text}
    for _ in range(_ROUNDS):
        better = None if verdict.passes else _next(text, verdict, seen, name, folder)
        if better is None:
            break
        text, verdict, what = better
        applied.append(what)
    return Repair(name, first, verdict, tuple(applied), text)


def _next(text: str, verdict: Verdict, seen: set[str], name: str, folder: Path) -> tuple[str, Verdict, str] | None:
    """Return the first suggested text that is not worse than this one, with its verdict and what was applied."""
    for finding in sorted(verdict.findings, key=lambda each: _ORDER[each["severity"]]):
        for suggestion in finding["suggestions"]:
            other = with_edits(text, suggestion["edits"])
            if other in seen:
                continue
            seen.add(other)
            found = judged(other, name, folder)
            if found.rank <= verdict.rank:
                return other, found, f"{finding['rule']}: {suggestion['title']}"
    return None


def judged(text: str, name: str, folder: Path) -> Verdict:
    """Return what lint, simulation and the comparison with the reference say of a text."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    found = [
        {"rule": each.rule, "severity": each.severity, "line": each.line, "suggestions": suggestions_as_plain(each)}
        for each in lint([path], interface=Dialects()).findings
    ]
    request = {"file": str(path), "kernel": "kernel", "against": "reference"} | _tolerance(text)
    try:
        answer = call(compared, request, seconds=_SECONDS)
    except Ended as ended:
        answer = {"error": str(ended)}
    found += answer.get("findings", [])
    errors = sum(each["severity"] == "error" for each in found)
    passes = bool(answer.get("agrees")) and not errors
    return Verdict(passes, errors, bool(answer.get("error")) and not answer.get("findings"), tuple(found))


def _tolerance(text: str) -> dict[str, float]:
    """Return ``tolerance = (rtol, atol)`` of a case."""
    line = next(each for each in text.splitlines() if each.startswith("tolerance = "))
    rtol, atol = line.removeprefix("tolerance = ").strip("()").split(",")
    return {"rtol": float(rtol), "atol": float(atol)}


def with_edits(text: str, edits: list[Plain]) -> str:
    """Return a text after edits: positions of lines and characters, from 1, in the text as it is."""
    source = Text(text)

    def place(each: Plain, end: str) -> tuple[int, int]:
        line, column = each[f"{end}line"], each[f"{end}column"]
        return line, len(source.lines[line - 1][: column - 1].encode())

    return source.edited(Edit(*place(each, ""), *place(each, "end_"), each["text"]) for each in edits)
