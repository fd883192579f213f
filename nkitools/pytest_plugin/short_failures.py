"""The lines of a test that failed: a rule or the first wrong element comes first, and a finding is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nkitools.rules.finding import Finding

_MARK = "E  "  # of pytest's lines that show an exception


def begin_with(report: pytest.TestReport, sentence: str) -> None:
    """Let the short summary begin with a sentence."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        crash.message = sentence


def begin_with_rule(report: pytest.TestReport, finding: Finding, *, shown_apart: bool) -> None:
    """Let the short summary begin with the rule and its sentence.

    ``shown_apart``: whether the report shows the finding in a section of its own, with its line and its picture. The
    traceback then ends in its rule alone.
    """
    begin_with(report, f"{finding.rule} {finding.message}")
    traceback = getattr(report.longrepr, "reprtraceback", None)
    lines = getattr(traceback.reprentries[-1], "lines", None) if traceback is not None else None
    if shown_apart and lines:
        kept = [line for line in lines if not line.startswith(_MARK)]
        if len(kept) < len(lines):
            lines[:] = [*kept, f"{_MARK} {finding.rule} {finding.slug}"]
