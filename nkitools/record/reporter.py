"""From a broken rule to a finding that names the author's line, tensors, counters and program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from nkitools.chip.core import CORE
from nkitools.record.loops import counters
from nkitools.record.names import with_names
from nkitools.record.record import Record
from nkitools.record.sites import Site, author_frame
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import Finding, StopRun, error_of

# A finding in a loop comes in each iteration, with its own counters; beyond so many the repeats of a line are counted.
MAX_REPEATS = 1000


class Reporter:
    """Acts on broken rules as the level says: ``error`` raises, ``report`` collects, ``off`` keeps silent.

    Of one rule at one site the first 1000 findings are kept; the record counts those left out.
    """

    def __init__(self, level: str, record: Record) -> None:
        self.level = level
        self.record = record
        self._repeats: Counter[tuple[str, Site]] = Counter()
        self._place: tuple[Site, FrameType | None] | None = None

    def __call__(self, rule: Rule, message: str, fatal: bool, about: Sequence[Any], remedy: str) -> bool:
        if self.level == "off" and not fatal:
            return False
        site, frame = self._place or (self.record.sites[self.record.sites.current(2)], author_frame(2))
        raises = rule.id == "NK607" or (self.level != "report" and (fatal or rule.severity == "error"))
        if not (raises or fatal) and self._is_repeat(rule, site):
            return True
        finding = self._finding(rule, site, frame, message, remedy)
        if self.level != "off" or rule.id == "NK607":
            self.record.findings.append(finding)
        if raises:
            raise error_of(finding)
        if fatal:
            raise StopRun
        return True

    @contextmanager
    def placed(self, site: Site, frame: FrameType | None = None) -> Iterator[None]:
        """Place what is reported inside at a site that the author has left; ``frame`` is theirs where it is known."""
        self._place = site, frame
        try:
            yield
        finally:
            self._place = None

    def add(self, error: BaseException) -> None:
        """Keep the finding of an error that was raised without asking here."""
        finding = getattr(error, "finding", None)
        if not isinstance(finding, Finding) or self.level == "off":
            return
        if not any(finding is known for known in self.record.findings):
            self.record.findings.append(finding)

    def _is_repeat(self, rule: Rule, site: Site) -> bool:
        self._repeats[rule.id, site] += 1
        if self._repeats[rule.id, site] <= MAX_REPEATS:
            return False
        self.record.findings_left_out += 1
        return True

    def _finding(self, rule: Rule, site: Site, frame: FrameType | None, message: str, remedy: str) -> Finding:
        core = CORE.get()
        return Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=with_names(message, frame, self.record),
            file=site.file,
            line=site.line,
            column=site.column,
            remedy=remedy,
            program=core.program if core is not None else (),
            loops=counters(frame) if core is not None else {},
            function=site.function,
        )
