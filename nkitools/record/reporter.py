"""From a broken rule to a finding that names the author's line, tensors, counters and program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from nkitools.chip.core import CORE
from nkitools.record.loops import counters
from nkitools.record.record import Record
from nkitools.record.sites import author_frame, is_internal
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import Finding, error_of

_UNNAMED = re.compile("\x00(\\d+)\x00")


class StopRun(BaseException):
    """Ends a run that collects its findings, where nothing further can be computed."""


def _name_in(frame: FrameType, storage: int) -> str:
    """The author's name for a storage: a local variable, or an element of a local list or tuple."""
    for name, value in frame.f_locals.items():
        if getattr(getattr(value, "storage", None), "id", None) == storage:
            return name
    for name, value in frame.f_locals.items():
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                if getattr(getattr(item, "storage", None), "id", None) == storage:
                    return f"{name}[{index}]"
    return ""


def name_of(frame: FrameType | None, storage: int) -> str:
    """The author's name for a storage in the innermost of their frames that has one, or ''."""
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            name = _name_in(frame, storage)
            if name:
                return name
        frame = frame.f_back
    return ""


def _with_names(message: str, frame: FrameType | None) -> str:
    def fill(match: re.Match[str]) -> str:
        name = name_of(frame, int(match[1]))
        return f"`{name}` " if name else ""

    return _UNNAMED.sub(fill, message)


class Reporter:
    """Acts on broken rules as the level says: ``error`` raises, ``report`` collects, ``off`` keeps silent."""

    def __init__(self, level: str, record: Record) -> None:
        self.level = level
        self.record = record

    def __call__(self, rule: Rule, message: str, fatal: bool, about: Sequence[Any], remedy: str) -> None:
        if self.level == "off" and not fatal:
            return
        finding = self._finding(rule, message, remedy)
        always = rule.id == "NK607"
        if self.level != "off" or always:
            self.record.findings.append(finding)
        if always or (self.level != "report" and (fatal or rule.severity == "error")):
            raise error_of(finding)
        if fatal:
            raise StopRun

    def _finding(self, rule: Rule, message: str, remedy: str) -> Finding:
        frame = author_frame(2)
        core = CORE.get()
        site = self.record.sites[self.record.sites.current(2)]
        return Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=_with_names(message, frame),
            file=site.file,
            line=site.line,
            column=site.column,
            remedy=remedy,
            program=core.program if core is not None else (),
            loops=counters(frame) if core is not None else {},
            function=site.function,
        )
