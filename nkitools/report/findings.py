"""A finding as plain data for JSON and HTML: the same keys for every finding, documented in docs/reference/json.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.report.excerpt import source_line

if TYPE_CHECKING:
    from nkitools.rules.finding import Finding, Picture

# Grows when a key is renamed or leaves; new keys may come at any time.
SCHEMA = 1


def finding_as_plain(finding: Finding) -> dict[str, Any]:
    """Every key is always there; what is not known is null, or empty where it is a list or an object."""
    return {
        "rule": finding.rule,
        "slug": finding.slug,
        "severity": finding.severity,
        "message": finding.message,
        "remedy": finding.remedy,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        "function": finding.function,
        "source": source_line(finding.file, finding.line),
        "program": list(finding.program),
        "loops": dict(finding.loops),
        "rank": finding.rank,
        "picture": None if finding.picture is None else picture_as_plain(finding.picture),
    }


def picture_as_plain(picture: Picture) -> dict[str, Any]:
    """Return the lines with the rows that each stands for, what goes across, and what the signs mean."""
    return {
        "lines": list(picture.lines),
        "rows": [list(span) for span in picture.rows],
        "columns": picture.columns,
        "across": picture.across,
        "first": picture.first,
        "meanings": dict(picture.meanings),
    }
