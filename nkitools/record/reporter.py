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

# A finding in a loop comes in each iteration, with its own counters; beyond so many the repeats of a line are counted.
MAX_REPEATS = 1000
# Reports fold findings: a few pictures are enough for one line.
MAX_PICTURES = 8


class Reporter:
    """Acts on broken rules as the level says.

    What is kept and what is raised decide the ``findings`` of the run. Of one rule at one site the first 1000 findings
    are kept, and the record counts the others.
    """

    def __init__(self, findings: Findings, record: Record) -> None:
        self.findings = findings
        self.level = findings.level
        self.record = record
        self.reports = 0  # of all rules, kept or not
        self._repeats: Counter[tuple[str, Site]] = Counter()
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
        site, frame = self._place or (self.record.sites[self.record.sites.current(2)], author_frame(2))
        verdict = self.findings.verdict(rule.id, rule.severity, fatal=fatal)
        self._repeats[rule.id, site] += 1
        told = self._repeats[rule.id, site] - 1
        if not verdict.raised and told >= MAX_REPEATS and (told or not fatal):
            self.record.findings_left_out += verdict.reason is None
            if fatal:
                raise StopRun
            return True
        finding = self._finding(rule, site, frame, message, remedy, facts_of(about, facts, frame, self.record))
        if picture is not None and (verdict.raised or fatal or self._repeats[rule.id, site] <= MAX_PICTURES):
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

    def _finding(
        self, rule: Rule, site: Site, frame: FrameType | None, message: str, remedy: str, facts: Mapping[str, Any]
    ) -> Finding:
        core = CORE.get()
        now = (core.program, counters(frame)) if core is not None else ((), {})
        program, loops = self._moment or now
        return Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=with_names(message, frame, self.record),
            file=site.file,
            line=site.line,
            column=site.column,
            remedy=remedy,
            program=program,
            loops=loops,
            function=site.function,
            rank=self.record.rank,
            facts=facts,
        )
