"""From a broken rule to a finding that names the author's line, tensors, counters and program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from nkitools.chip.core import CORE
from nkitools.record.allowed_rules import allowance
from nkitools.record.loop_counters import counters
from nkitools.record.record import Record
from nkitools.record.source_sites import Site, author_frame
from nkitools.record.tensor_names import with_names
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import Drawing, Finding, StopRun, error_of, is_raised

# A finding in a loop comes in each iteration, with its own counters; beyond so many the repeats of a line are counted.
MAX_REPEATS = 1000
# Whoever shows findings folds them: of one line a few pictures will do.
MAX_PICTURES = 8


class Reporter:
    """Acts on broken rules as the level says.

    ``error`` raises, ``strict`` for warnings too, ``report`` collects, ``off`` keeps silent.

    Of one rule at one site the first 1000 findings are kept; the record counts those left out. Findings of rules that
    somebody accepts are kept apart and raise nothing, unless nothing can be computed any more.
    """

    def __init__(self, level: str, record: Record) -> None:
        self.level = level
        self.record = record
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
    ) -> bool:
        if self.level == "off" and not fatal:
            return False
        site, frame = self._place or (self.record.sites[self.record.sites.current(2)], author_frame(2))
        accepted = None if fatal else allowance(rule.id)
        ends = is_raised(rule.severity, self.level) or (fatal and self.level != "report")
        raises = rule.id == "NK607" or (ends and accepted is None)
        self._repeats[rule.id, site] += 1
        told = self._repeats[rule.id, site] - 1
        if not raises and told >= MAX_REPEATS and (told or not fatal):
            self.record.findings_left_out += accepted is None
            if fatal:
                raise StopRun
            return True
        finding = self._finding(rule, site, frame, message, remedy)
        if picture is not None and (raises or fatal or self._repeats[rule.id, site] <= MAX_PICTURES):
            finding = replace(finding, picture=picture())
        if self.level != "off" or rule.id == "NK607":
            self._keep(finding, accepted)
        if raises:
            raise error_of(finding)
        if fatal:
            raise StopRun
        return True

    def _keep(self, finding: Finding, accepted: str | None) -> None:
        if accepted is None:
            self.record.findings.append(finding)
        else:
            self.record.allowed.append((finding, accepted))

    @contextmanager
    def placed(
        self,
        site: Site,
        frame: FrameType | None = None,
        *,
        program: tuple[int, ...] = (),
        loops: dict[str, int] | None = None,
    ) -> Iterator[None]:
        """Place what is reported inside at a site that the author has left; ``frame`` is theirs where it is known.

        ``program`` and ``loops`` say when, of what is history.
        """
        self._place = site, frame
        self._moment = None if loops is None else (program, loops)
        try:
            yield
        finally:
            self._place = self._moment = None

    def add(self, error: BaseException) -> None:
        """Keep the finding of an error that was raised without asking here."""
        finding = getattr(error, "finding", None)
        if not isinstance(finding, Finding) or self.level == "off":
            return
        if not any(finding is known for known in self.record.findings):
            self.record.findings.append(finding)

    def _finding(self, rule: Rule, site: Site, frame: FrameType | None, message: str, remedy: str) -> Finding:
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
        )
