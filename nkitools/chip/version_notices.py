"""Findings of NK618 in a running kernel: names and forms that NKI has removed, or announces to remove."""

from __future__ import annotations

from nkitools.chip.core import CORE
from nkitools.facts.versions import Notice
from nkitools.rules.finding import report


def report_notice(notice: Notice | None) -> None:
    """Report NK618 at the author's line, once for a line in a program: most such calls stand in loops."""
    core = CORE.get()
    if notice is None or core is None:
        return
    number = core.record.site()
    site = core.record.sites.all[number] if number >= 0 else None
    place = ("", 0, notice.message) if site is None else (site.file, site.line, notice.message)
    if place not in core.noticed:
        core.noticed.add(place)
        report("NK618", notice.message, remedy=notice.remedy, severity=notice.severity)
