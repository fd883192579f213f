"""The rules that only a kernel's source shows: reported before it runs, at the level of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import RULES


def report_source(function: Callable[..., Any], reporter: Reporter) -> None:
    """Report the findings of `nkitools.lint` about a kernel and the functions that it names (errors and warnings)."""
    if reporter.level == "off":
        return
    from nkitools.lint.functions import source_findings  # the parser and the checks, which no import needs

    for found in source_findings(function):
        with reporter.placed(Site(found.file, found.line, found.column, found.function)):
            reporter(RULES[found.rule], found.message, False, (), found.remedy)
