"""Suggestions as plain data, with columns as editors count them: from 1, in characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkitools.edits.source import Text
from nkitools.lint.module import Unreadable, read
from nkitools.rules.finding import Finding
from nkitools.suggestions.catalogue import MECHANICAL, suggestions


def suggestions_as_plain(finding: Finding) -> list[dict[str, Any]]:
    """Return the suggestions for a finding: ``title``, and ``edits`` of ``line``, ``column``, their ends and ``text``.

    There is none for a file that cannot be read.
    """
    if finding.rule not in MECHANICAL:
        return []
    try:
        text = read(Path(finding.file))
    except (Unreadable, OSError):
        return []
    source = Text(text)
    found = suggestions(finding, text)
    return [{"title": each.title, "edits": [source.plain(one) for one in each.edits]} for each in found]
