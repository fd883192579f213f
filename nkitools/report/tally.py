"""Counting runs: how many kernels, prints and findings, with repeats of a finding folded into one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding

_NUMBER = re.compile(r"\d+")
_SEVERITIES = ("error", "warning", "hint")


@dataclass
class FoldedFinding:
    """A finding and how often it came; ``place`` has the program and the loop counters of the first time.

    ``raised`` tells what ended a run (and whoever called the kernel had to deal with) from what was only collected.
    """

    rule: str
    severity: str
    text: str
    remedy: str
    place: str = ""
    raised: bool = False
    count: int = 1

    def lines(self) -> list[str]:
        """The finding, its count where it is more than one, its remedy and its place."""
        times = f" (x{self.count})" if self.count > 1 else ""
        return [f"{self.text}{times}", *(f"    {line}" for line in (self.remedy, self.place) if line)]


@dataclass
class Tally:
    """The counts of some runs, and their findings folded: same rule, same line, whatever the numbers in the message."""

    kernels: int = 0
    prints: int = 0
    findings: dict[str, FoldedFinding] = field(default_factory=dict)

    def add(self, runs: Iterable[Run], base: str) -> None:
        """Count ``runs``; files below the directory ``base`` are named relative to it."""
        for run in runs:
            self.kernels += 1
            self.prints += len(run.prints)
            ended_by = getattr(run.error, "finding", None)
            for finding in run.findings:
                raised = finding is ended_by
                self._fold(_key(finding, raised), _folded(finding, base, raised))

    def merge(self, other: Tally) -> None:
        """Count what ``other`` counted."""
        self.kernels += other.kernels
        self.prints += other.prints
        for key, finding in other.findings.items():
            self._fold(key, replace(finding))

    def _fold(self, key: str, finding: FoldedFinding) -> None:
        known = self.findings.get(key)
        if known is None:
            self.findings[key] = finding
        else:
            known.count += finding.count

    def ranked(self) -> list[FoldedFinding]:
        """The folded findings, errors first, else in the order in which they came."""
        return sorted(self.findings.values(), key=lambda finding: _SEVERITIES.index(finding.severity))

    def finding_count(self) -> int:
        """How many findings there were, repeats included."""
        return sum(finding.count for finding in self.findings.values())

    def rules(self) -> list[str]:
        """The ids of the rules that spoke, sorted."""
        return sorted({finding.rule for finding in self.findings.values()})

    def sentence(self) -> str:
        """``2 kernels run, 1 finding, 4 device prints``."""
        return ", ".join(
            (
                _counted(self.kernels, "kernel") + " run",
                _counted(self.finding_count(), "finding"),
                _counted(self.prints, "device print"),
            )
        )

    def as_plain(self) -> dict[str, Any]:
        """The tally as dicts, texts and numbers, for a journey to another process."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Tally:
        """What ``as_plain`` made."""
        findings = {key: FoldedFinding(**finding) for key, finding in plain["findings"].items()}
        return cls(plain["kernels"], plain["prints"], findings)


def tally_of(runs: Iterable[Run], base: str) -> Tally:
    """The tally of ``runs``."""
    tally = Tally()
    tally.add(runs, base)
    return tally


def relative(file: str, base: str) -> str:
    """``file`` as seen from the directory ``base`` if it lies below it, else as it is."""
    inside = os.path.join(base, "")
    return file.removeprefix(inside)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _key(finding: Finding, raised: bool) -> str:
    # A finding in a loop comes with other numbers each time round; it is one thing to mend.
    message = _NUMBER.sub("#", finding.message)
    return f"{finding.rule} {finding.file}:{finding.line} {message}{' (raised)' if raised else ''}"


def _folded(finding: Finding, base: str, raised: bool) -> FoldedFinding:
    shown = replace(finding, file=relative(finding.file, base))
    counters = [f"loop {name}={value}" for name, value in finding.loops.items()]
    program = [f"program {', '.join(map(str, finding.program))}"] if any(finding.program) else []
    place = ", ".join([*program, *counters])
    return FoldedFinding(finding.rule, finding.severity, shown.text(), finding.remedy, place, raised)
