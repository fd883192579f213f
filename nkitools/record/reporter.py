"""From a broken rule to a finding that names the author's line, tensors, counters and program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from nkitools.chip.core import CORE
from nkitools.record.loop_counters import counters
from nkitools.record.record import Record
from nkitools.record.run_session import Findings
from nkitools.record.source_sites import Site, author_frame
from nkitools.record.tensor_names import facts_of, with_names
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import NO_FACTS, Drawing, Finding, StopRun, error_of

# A finding in a loop comes in each iteration, with its own counters; beyond so many their messages are not written.
MAX_REPEATS = 1000
# A few pictures are enough for one line.
MAX_PICTURES = 8


class Reporter:
    """Acts on broken rules as the level says.

    What is kept and what is raised decide the ``findings`` of the run. Of one rule at one site the first 1000 findings
    have their own messages; the others are counted with the last of these.
    """

    def __init__(self, findings: Findings, record: Record) -> None:
        self.findings = findings
        self.level = findings.level
        self.record = record
        self.reports = 0  # of all rules, kept or not
        self._times: Counter[tuple[str, Site]] = Counter()
        self._latest: dict[tuple[str, Site], Finding] = {}
        self._place: tuple[Site, FrameType | None] | None = None
        self._moment: tuple[tuple[int, ...], dict[str, int]] | None = None

    def __call__(
        self,
        rule: Rule,
        message: str,
        fatal: bool,
        about: Sequence[Any],
        remedy: str,
        picture: Drawing | None = None,
        facts: Mapping[str, Any] = NO_FACTS,
    ) -> bool:
        self.reports += 1
        if self.level == "off" and not fatal:
            return False
        number = self.record.sites.current(2) if self.record.report_site < 0 else self.record.report_site
        site, frame = self._place or (self.record.sites[number], author_frame(2))
        verdict = self.findings.verdict(rule.id, rule.severity, fatal=fatal)
        self._times[rule.id, site] += 1
        times, latest = self._times[rule.id, site], self._latest.get((rule.id, site))
        program, loops = self._moment or _moment_of(frame)
        if latest is not None and times > MAX_REPEATS and not (verdict.raised or fatal):
            finding = replace(latest, program=program, loops=loops)
        else:
            named = with_names(message, frame, self.record)
            known = facts_of(about, facts, frame, self.record)
            finding = self._finding(rule, site, named, remedy, program=program, loops=loops, facts=known)
            self._latest[rule.id, site] = finding
        if (
            picture is not None
            and (verdict.raised or fatal or times <= MAX_PICTURES)
            and self.findings.is_new(finding, verdict)
        ):
            finding = replace(finding, picture=picture())
        self.findings.keep(finding, verdict)
        if verdict.raised:
            raise error_of(finding) from None
        if fatal:
            raise StopRun
        return True

    @contextmanager
    def placed(
        self,
        site: Site,
        frame: FrameType | None = None,
        *,
        program: tuple[int, ...] = (),
        loops: dict[str, int] | None = None,
    ) -> Iterator[None]:
        """Place the reports inside at a site that the author has left; ``frame`` is the author's where it is known.

        ``program`` and ``loops`` are those of the time that a report is about, where that has passed.
        """
        self._place = site, frame
        self._moment = None if loops is None else (program, loops)
        try:
            yield
        finally:
            self._place = self._moment = None

    def _finding(self, rule: Rule, site: Site, message: str, remedy: str, **more: Any) -> Finding:
        return Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=message,
            file=site.file,
            line=site.line,
            column=site.column,
            remedy=remedy,
            function=site.function,
            rank=self.record.rank,
            **more,
        )


def _moment_of(frame: FrameType | None) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the program and the loop counters of now."""
    core = CORE.get()
    return (core.program, counters(frame)) if core is not None else ((), {})
