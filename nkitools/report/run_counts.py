"""Counting runs: how many kernels, prints and findings, with repeats of a finding folded into one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nkitools.chip.host_memory import size_text
from nkitools.report.excerpt import excerpt
from nkitools.report.pictures import picture_lines
from nkitools.rules.finding import Picture
from nkitools.rules.shown_text import shown, shown_line

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding

_LARGE = 1 << 30  # bytes of a run, above which the sentence says how many
_SEVERITIES = ("error", "warning", "hint")


@dataclass
class Tally:
    """The counts of some runs, and their findings, folded by rule and line, ignoring numbers in messages.

    Expected and allowed findings are kept apart: `ranked`, `finding_count` and `rules` count the others.
    """

    kernels: int = 0
    prints: int = 0
    findings: dict[str, FoldedFinding] = field(default_factory=dict)
    peak_bytes: int = 0  # of the run that took the most memory
    met: dict[str, dict[str, bool]] = field(default_factory=dict)  # by kernel, see `nkitools.report.never_met`
    unrounded: int = 0  # runs that kept narrow floats in float32

    def add(self, runs: Iterable[Run], base: str) -> None:
        """Count ``runs``; files below the directory ``base`` are named relative to it."""
        from nkitools.report import never_met  # with NumPy, which lint does without

        for run in runs:
            self.kernels += 1
            self.prints += len(run.prints)
            self.unrounded += run.precision == "full"
            self.peak_bytes = max(self.peak_bytes, run.peak_bytes)
            never_met.merge(self.met, {run.kernel: never_met.met_by(run)})
            ended_by = getattr(run.error, "finding", None)
            expected = {id(finding) for finding in run.expected}
            for finding in run.findings:
                status = "expected" if id(finding) in expected else "raised" if finding is ended_by else ""
                self._count(finding, base, status)
            reasons = run.reasons
            for finding in run.allowed:
                status = "expected" if id(finding) in expected else "allowed"
                self._count(finding, base, status, reasons[finding.rule])

    def _count(self, finding: Finding, base: str, status: str, reason: str = "") -> None:
        key = _key(finding, f"{status}: {reason}" if reason else status)
        known = self.findings.get(key)
        if known is None:
            self.findings[key] = replace(_folded(finding, base), status=status, reason=reason)
        else:
            known.count += finding.count
            known.last = _last_place(finding)

    def merge(self, other: Tally) -> None:
        """Add the counts of ``other``."""
        from nkitools.report import never_met

        self.kernels += other.kernels
        self.prints += other.prints
        self.unrounded += other.unrounded
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)
        never_met.merge(self.met, other.met)
        for key, finding in other.findings.items():
            known = self.findings.get(key)
            if known is None:
                self.findings[key] = replace(finding)
            else:
                known.count += finding.count
                known.last = finding.last

    def catch_raised(self) -> None:
        """Count the findings that ended runs as caught: the test's own code goes on without them, and it passed."""
        for finding in self.findings.values():
            if finding.raised:
                finding.status = "caught"

    def ranked(self, status: str | None = None) -> list[FoldedFinding]:
        """Return the folded findings with ``status``, by default the open ones: errors first, then by time."""
        chosen = (one for one in self.findings.values() if (one.is_open if status is None else one.status == status))
        return sorted(chosen, key=lambda finding: _SEVERITIES.index(finding.severity))

    def finding_count(self) -> int:
        """Return the number of findings, repeats included."""
        return sum(finding.count for finding in self.ranked())

    def rules(self) -> list[str]:
        """Return the ids of the rules that spoke, sorted."""
        return sorted({finding.rule for finding in self.ranked()})

    def sentence(self) -> str:
        """Return ``2 kernels run, 1 finding, 4 device prints``, and the numbers of expected, allowed and caught
        findings.
        """
        marked = [(status, sum(each.count for each in self.ranked(status))) for status in ("expected", "allowed")]
        apart = [f"{number} {status}" for status, number in marked if number]
        caught = sum(each.count for each in self.ranked("caught"))
        apart += [f"{caught} caught by the test's own code"] if caught else []
        large = [f"the largest took {size_text(self.peak_bytes)}"] if self.peak_bytes > _LARGE else []
        return ", ".join(
            (
                counted(self.kernels, "kernel") + " run",
                counted(self.finding_count(), "finding") + (f" ({', '.join(apart)})" if apart else ""),
                counted(self.prints, "device print"),
                *large,
                *([f"{self.unrounded} in full precision (NKI_PRECISE_FP=1 rounds as the chip)"] * (self.unrounded > 0)),
            )
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the tally as dicts, lists, texts and numbers, for a journey to another process."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Tally:
        """Return the tally that ``as_plain`` has converted."""
        findings = {key: FoldedFinding.from_plain(finding) for key, finding in plain["findings"].items()}
        return cls(plain["kernels"], plain["prints"], findings, plain["peak_bytes"], plain["met"], plain["unrounded"])


def tally_of(runs: Iterable[Run], base: str) -> Tally:
    """Return the tally of ``runs``."""
    tally = Tally()
    tally.add(runs, base)
    return tally


def relative(file: str, base: str) -> str:
    """``file`` as seen from the directory ``base`` if it lies below it, else as it is."""
    inside = os.path.join(base, "")
    return file.removeprefix(inside)


def counted(number: int, what: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _key(finding: Finding, status: str) -> str:
    # A finding in a loop comes with other numbers each time round; it is one thing to mend.
    message = finding.message_without_numbers()
    return f"{finding.rule} {finding.file}:{finding.line} {message}{f' ({status})' if status else ''}"


def _folded(finding: Finding, base: str) -> FoldedFinding:
    message = finding.message.replace(os.path.join(base, ""), "") if base else finding.message
    shown = replace(finding, file=relative(finding.file, base), message=message, rank=None, count=1)
    return FoldedFinding(
        rule=finding.rule,
        severity=finding.severity,
        text=shown.text(),
        remedy=finding.remedy,
        source=excerpt(finding.file, finding.line, finding.column),
        picture=finding.picture,
        place=_place(finding),
        last=_last_place(finding),
        count=finding.count,
        facts=dict(finding.facts),
    )


def _place(finding: Finding) -> str:
    """Return ``rank 1, program 0, 1, m=3``, without parts that are empty."""
    return _with_rank(finding, finding.place.text())


def _last_place(finding: Finding) -> str:
    return _with_rank(finding, (finding.last or finding.place).text())


def _with_rank(finding: Finding, place: str) -> str:
    rank = [f"rank {finding.rank}"] if finding.rank is not None else []
    return ", ".join([*rank, *([place] if place else [])])


_INDENT = "    "


@dataclass
class FoldedFinding:
    """A finding with the number of its repeats; ``place`` and ``last``: program and loop counters of the first and
    last.

    ``source``: the author's line with a caret. ``status``: '' for a finding that was only collected, ``raised`` if it
    ended a run, ``caught`` if the test went on and passed, ``expected`` if a test asked for it, ``allowed`` if it is
    accepted for a ``reason``. ``facts``: of the first one.
    """

    rule: str
    severity: str
    text: str
    remedy: str
    source: list[str] = field(default_factory=list)
    picture: Picture | None = None
    place: str = ""
    last: str = ""
    status: str = ""
    reason: str = ""
    count: int = 1
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def raised(self) -> bool:
        """Return whether the finding ended a run."""
        return self.status == "raised"

    @property
    def is_open(self) -> bool:
        """Return whether the finding is neither expected nor allowed."""
        return self.status in ("", "raised", "caught")

    def lines(self, *, blocks: bool = False) -> list[str]:
        """Return the finding; below it, indented, its line, picture, remedy and place, and how many more there are.

        ``blocks``: whether pictures may have signs beyond ASCII.
        """
        picture = [] if self.picture is None else picture_lines(self.picture, blocks=blocks)
        where = self._where()
        below = [*self.source, *picture, self.remedy, *([where] if where else [])]
        return [shown(line) for line in (self.text, *(_INDENT + line for line in below))]

    def _where(self) -> str:
        if self.count == 1:
            return f"at {self.place}" if self.place else ""
        more = f"and {self.count - 1:,} more"
        if self.place == self.last:
            return f"at {self.place}, {more}" if self.place else more
        return f"{more}, first at {self.place or 'no loop'}, last at {self.last or 'no loop'}"

    def line(self) -> str:
        """All in one line: the finding, and how often it came."""
        return shown(f"{self.text} (x{self.count:,})" if self.count > 1 else self.text)

    def facts_line(self) -> str:
        """Return rule, number of times and facts as JSON."""
        return shown_line(json.dumps({"rule": self.rule, "count": self.count, "facts": self.facts}))

    def allowed_line(self) -> str:
        """Return the line with the reason for accepting the finding."""
        return shown(f"{self.line()}; allowed: {self.reason}") if self.reason else self.line()

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> FoldedFinding:
        """Return the finding from its ``dataclasses.asdict``, also after a journey through JSON."""
        picture = plain["picture"]
        return cls(**{**plain, "picture": None if picture is None else _picture(picture)})


def _picture(plain: dict[str, Any]) -> Picture:
    pairs = {name: tuple(tuple(pair) for pair in plain[name]) for name in ("rows", "meanings")}
    return Picture(**{**plain, "lines": tuple(plain["lines"]), **pairs})
