"""A run from its beginning to its end, and the verdict on each finding: accepted, kept or raised."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from nkitools.facts.light_classes import NamedTuple, dataclass, field, replace
from nkitools.record.allowed_rules import allowance
from nkitools.record.kept_layouts import begin_run, end_run
from nkitools.record.run import Run
from nkitools.record.run_listeners import added, announce, conclude
from nkitools.rules.finding import MOST_PLACES, Finding, Place, StopRun, error_of, is_raised


class Verdict(NamedTuple):
    """The verdict on a finding in a run.

    ``kept``: the run keeps the finding.
    ``reason``: why the finding is accepted ('' without a stated reason), None for one that is not accepted.
    ``raised``: the finding ends the run as an error.
    """

    kept: bool
    reason: str | None
    raised: bool


@dataclass(slots=True, eq=False)
class Kept:
    """A finding that a run keeps, and its later times that are not counted with it yet: how many, and the last one."""

    position: int  # in its list
    reason: str | None  # of an accepted one
    repeats: int = 0
    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict)
    message: str = ""


class Findings:
    """The findings of a run while it goes on.

    ``run.findings`` and ``run.set_aside`` are the only lists of a run's findings. `repeated` notes repeats, which
    `settle` adds to the findings' counts, at the end of the run at the latest. Level ``off`` keeps and raises nothing,
    ``report`` keeps, ``error`` also raises errors, ``strict`` raises warnings too. A fatal NK607 (not modelled) is kept
    and raised at every level.
    """

    def __init__(self, run: Run, level: str) -> None:
        self.run = run
        self.level = level
        self._first: dict[tuple[Hashable, ...], Kept] = {}  # by kinds of findings
        self._unsettled: dict[int, Kept] = {}  # by id

    @property
    def all(self) -> list[Finding]:
        """Return the findings so far, accepted ones last."""
        self.settle()
        return [*self.run.findings, *self.run.allowed]

    @property
    def has_error(self) -> bool:
        """Return whether the run has an error that is not accepted."""
        return any(finding.severity == "error" for finding in self.run.findings)

    def verdict(self, rule: str, severity: str, *, fatal: bool = False) -> Verdict:
        """Return the verdict on a finding. A ``fatal`` one leaves nothing to compute, so it is never accepted."""
        unmodelled = fatal and rule == "NK607"
        reason = None if fatal else allowance(rule)
        ends = is_raised(severity, self.level) or (fatal and self.level != "report")
        return Verdict(unmodelled or self.level != "off", reason, unmodelled or (ends and reason is None))

    def keep(self, finding: Finding, verdict: Verdict) -> Kept | None:
        """Keep ``finding`` as ``verdict`` says; a repeat of an earlier finding is counted with it.

        A raised finding stays separate, since the error carries it. Returns the counter for `repeated`; None if not all
        first places of the finding are known yet.
        """
        if not verdict.kept:
            return None
        key = () if verdict.raised else self._key(finding, verdict)
        kept = self._first.get(key)
        if kept is None:
            kept = Kept(len(self.run.findings if verdict.reason is None else self.run.set_aside), verdict.reason)
            if key:
                self._first[key] = kept
            self._put(kept, finding)
            return None
        self._count(kept)
        both = self._at(kept).again(finding)
        self._put(kept, both)
        return kept if both.count >= MOST_PLACES else None

    def repeated(self, kept: Kept, program: tuple[int, ...], loops: dict[str, int], message: str) -> None:
        """Note another time of a finding, with its counters and its message."""
        if not kept.repeats:
            self._unsettled[id(kept)] = kept
        kept.repeats += 1
        kept.program, kept.loops, kept.message = program, loops, message

    def settle(self) -> None:
        """Add the repeats that `repeated` has noted to the findings' counts."""
        for kept in list(self._unsettled.values()):
            self._count(kept)

    def _count(self, kept: Kept) -> None:
        """Count with a finding its later times."""
        if self._unsettled.pop(id(kept), None) is None:
            return
        found, last = self._at(kept), Place(kept.program, kept.loops, kept.message)
        self._put(kept, replace(found, count=found.count + kept.repeats, last=last))
        kept.repeats = 0

    def _at(self, kept: Kept) -> Finding:
        run = self.run
        return run.findings[kept.position] if kept.reason is None else run.set_aside[kept.position][0]

    def _put(self, kept: Kept, finding: Finding) -> None:
        at = slice(kept.position, kept.position + 1)
        if kept.reason is None:
            self.run.findings[at] = [finding]
        else:
            self.run.set_aside[at] = [(finding, kept.reason)]

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
    """Return the findings of the current run; None outside of a run."""
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
        self.findings.settle()
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
