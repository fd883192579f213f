"""Suggestions as plain data, with columns as editors count them: from 1, in characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkitools.lint.module import Module, Unreadable, read
from nkitools.lint.rewriting import Edit
from nkitools.rules.finding import Finding
from nkitools.suggestions.catalogue import MECHANICAL, suggestions


def suggestions_as_plain(
    finding: Finding, text: str | None = None, module: Module | None = None
) -> list[dict[str, Any]]:
    """Return the suggestions for a finding: ``title``, and ``edits`` of ``line``, ``column``, their ends and ``text``.

    ``text`` is that of the finding's file, which is read where it is not given; none for a file that cannot be read.
    ``module``: the parsed text, where it is at hand.
    """
    if finding.rule not in MECHANICAL:
        return []
    if text is None:
        try:
            text = read(Path(finding.file))
        except (Unreadable, OSError):
            return []
    lines = text.splitlines()
    found = suggestions(finding, text, module)
    return [{"title": each.title, "edits": [_plain(one, lines) for one in each.edits]} for each in found]


def _plain(edit: Edit, lines: list[str]) -> dict[str, Any]:
    return {
        "line": edit.line,
        "column": character(lines, edit.line, edit.column) + 1,
        "end_line": edit.end_line,
        "end_column": character(lines, edit.end_line, edit.end_column) + 1,
        "text": edit.text,
    }


def character(lines: list[str], line: int, column: int) -> int:
    """Return which character of a line (from 1) begins at a byte, from 0."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return len(text.encode()[:column].decode(errors="replace"))
