"""What came of each case, and the figures over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.wrong_values import door
from benchmarks.wrong_values.cases import BEYOND, INNOCENT, SINGLE, Case
from benchmarks.wrong_values.judge import is_right

SHORT = 5.0  # seconds that a failing test gives
COLUMNS = "case", "answer", "seconds", "cpu", "line", "planted", "right", "kind", "source"


@dataclass(frozen=True)
class Outcome:
    """An answer about a case, judged."""

    case: Case
    answer: door.Answer
    is_right: bool  # the edited kernel, on arguments that the search never saw

    @property
    def is_edit(self) -> bool:
        """Return whether the answer has an edit, verified or not."""
        return bool(self.answer.text)

    @property
    def is_repaired(self) -> bool:
        """Return whether the answer claims a verified edit."""
        return self.answer.kind == door.REPAIRED and self.is_edit

    @property
    def is_planted(self) -> bool:
        """Return whether the edit is at a planted line."""
        return self.is_edit and any(self.answer.line in each.lines for each in self.case.mistakes)

    def row(self) -> str:
        """Return the case as a row of a table, by COLUMNS."""
        planted = ",".join(str(each.line) for each in self.case.mistakes)
        verdict = ("yes" if self.is_right else "no") if self.is_edit else ""
        times = f"{self.answer.seconds:.1f}", f"{self.answer.cpu:.1f}"
        found = self.answer.kind, *times, str(self.answer.line or ""), planted, verdict
        return "\t".join([f"{self.case.family}/{self.case.name}", *found, self.case.kind, self.case.source])


def outcome(case: Case, seconds: float, folder: Path) -> Outcome:
    """Ask about a case and judge the answer."""
    answer = door.asked(case, seconds, folder)
    return Outcome(case, answer, bool(answer.text) and is_right(case, answer.text, folder))


def figures(done: Sequence[Outcome]) -> list[str]:
    """Return the figures as lines."""
    lines = []
    for title, families in (("NKI", SINGLE[:2]), ("Pallas", SINGLE[2:])):
        lines += _of_single(title, [each for each in done if each.case.family in families])
    beyond = [each for each in done if each.case.family == BEYOND]
    false = [each for each in beyond if each.is_repaired and not each.is_right]
    lines.append(f"no single edit mends: {_share(false, beyond)} repaired by an edit that fails elsewhere")
    innocent = [each for each in done if each.case.family == INNOCENT]
    edits = [each for each in innocent if each.is_edit]
    elementary = sum(each.case.expected == "elementary" for each in edits)
    lines.append(f"right kernels: {_share(edits, innocent)} with an edit; for {elementary} the reference suggests one")
    lines += [f"  {each.case.name}: an edit where none is due" for each in (*false, *edits)]
    return lines


def _of_single(title: str, done: list[Outcome]) -> list[str]:
    repaired = [each for each in done if each.is_repaired]
    right = [each for each in repaired if each.is_right]
    planted = [each for each in repaired if each.is_planted]
    at_place = [each for each in repaired if each.is_planted or each.is_right]
    soon = [each for each in right if each.answer.seconds <= SHORT]
    fits = sum(each.is_edit and not each.is_repaired for each in done)
    return [
        f"{title}: repaired {_share(repaired, done)}; right of these on unseen arguments {_share(right, repaired)}",
        f"  at the planted line {_share(planted, repaired)}, or equivalent {_share(at_place, repaired)}",
        f"  right within {SHORT:g} s {_share(soon, done)}; edits that only fit {fits}",
    ]


def _share(some: Iterable[Outcome], whole: Iterable[Outcome]) -> str:
    count, total = len(list(some)), len(list(whole))
    return f"{count} of {total}" + (f" ({count / total:.0%})" if total else "")
