"""A run from its beginning to its end, and the verdict on each finding: accepted, kept or raised."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from nkitools.record.allowed_rules import allowance
from nkitools.record.kept_layouts import begin_run, end_run
from nkitools.record.run import Run
from nkitools.record.run_listeners import added, announce, conclude
from nkitools.rules.finding import Finding, StopRun, error_of, is_raised


class Verdict(NamedTuple):
    """The verdict on a finding in a run.

    ``kept``: the run keeps the finding.
    ``reason``: why the finding is accepted ('' without a stated reason), None for one that is not accepted.
    ``raised``: the finding ends the run as an error.
    """

    kept: bool
    reason: str | None
    raised: bool


class Findings:
    """The findings of a run while it goes on.

    ``run.findings`` and ``run.set_aside`` are the only lists that hold findings of a run. Level ``off`` keeps and
    raises nothing, ``report`` keeps, ``error`` also raises errors, ``strict`` raises warnings too. A fatal NK607 (not
    modelled) is kept and raised at every level.
    """

    def __init__(self, run: Run, level: str) -> None:
        self.run = run
        self.level = level
        self._first: dict[tuple[Hashable, ...], int] = {}  # the place of a kind of finding in its list

    @property
    def all(self) -> list[Finding]:
        """Return the findings so far, accepted ones last."""
        return [*self.run.findings, *self.run.allowed]

    @property
    def has_error(self) -> bool:
        """Return whether an error that is not accepted has been found."""
        return any(finding.severity == "error" for finding in self.run.findings)

    def verdict(self, rule: str, severity: str, *, fatal: bool = False) -> Verdict:
        """Return what becomes of a finding; a ``fatal`` one leaves nothing to compute, so it is never accepted."""
        unmodelled = fatal and rule == "NK607"
        reason = None if fatal else allowance(rule)
        ends = is_raised(severity, self.level) or (fatal and self.level != "report")
        return Verdict(unmodelled or self.level != "off", reason, unmodelled or (ends and reason is None))

    def keep(self, finding: Finding, verdict: Verdict) -> None:
        """Keep ``finding`` as ``verdict`` says: one of a kind that came before is counted with that.

        One that is raised stands for itself: the error carries it.
        """
        if not verdict.kept:
            return
        reason, findings, aside = verdict.reason, self.run.findings, self.run.set_aside
        key = () if verdict.raised else self._key(finding, verdict)
        place = self._first.get(key)
        if place is None:
            if key:
                self._first[key] = len(findings) if reason is None else len(aside)
            if reason is None:
                findings.append(finding)
            else:
                aside.append((finding, reason))
        elif reason is None:
            findings[place] = findings[place].again(finding)
        else:
            aside[place] = aside[place][0].again(finding), reason

    def is_new(self, finding: Finding, verdict: Verdict) -> bool:
        """Return whether a finding would be the first of its kind."""
        return verdict.raised or self._key(finding, verdict) not in self._first

    def _key(self, finding: Finding, verdict: Verdict) -> tuple[Hashable, ...]:
        apart = (each(finding.message) is None for each in _apart.get())
        return verdict.reason, finding.kind(), *apart

    def add(self, findings: Iterable[Finding], cause: BaseException | None = None) -> None:
        """Keep ``findings``, then raise the first one that the level raises, with ``cause`` as its cause."""
        __tracebackhide__ = True
        raised: Finding | None = None
        for finding in findings:
            verdict = self.verdict(finding.rule, finding.severity)
            self.keep(finding, verdict)
            raised = raised or (finding if verdict.raised else None)
        if raised is not None:
            raise error_of(raised) from cause

    def add_error(self, error: BaseException) -> None:
        """Keep the finding of an error that ended the run without a verdict."""
        finding = getattr(error, "finding", None)
        if not isinstance(finding, Finding) or self.level == "off":
            return
        if not any(finding is known for known in self.run.findings):
            self.run.findings.append(finding)


_apart: ContextVar[tuple[Callable[[str], object], ...]] = ContextVar("nkitools_apart", default=())


@contextmanager
def told_apart(pattern: re.Pattern[str] | None) -> Iterator[None]:
    """Count findings whose messages fit a pattern apart from others of their kind, in the runs of a block."""
    if pattern is None:
        yield
        return
    fits: Callable[[str], object] = pattern.search
    with added(_apart, fits):
        yield


_current: ContextVar[Findings | None] = ContextVar("nkitools_findings", default=None)


def current_findings() -> Findings | None:
    """Return the findings of the run that goes on here, None outside of a run."""
    return _current.get()


class session:  # noqa: N801 - it is used as a function
    """``with session(run, level) as findings:`` Announce ``run``, let the block find things, and conclude the run.

    An exception of the block is kept in ``run.error``, and its finding among the run's findings. A run that collects
    its findings and cannot go on ends the block quietly. A class, whose beginning and end take half of the time of a
    generator's.
    """

    def __init__(self, run: Run, level: str = "report") -> None:
        self.run, self.level = run, level

    def __enter__(self) -> Findings:
        announce(self.run)
        self.findings = Findings(self.run, self.level)
        self._token = _current.set(self.findings)
        begin_run()
        return self.findings

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        ends_quietly = isinstance(error, StopRun)
        if error is not None and not ends_quietly:
            self.run.error = error
            self.findings.add_error(error)
            for record in self.run.all_records:
                record.leave_out_unfinished()
        end_run()
        _current.reset(self._token)
        conclude(self.run)
        return ends_quietly
