"""Suggestions as plain data, with columns as editors count them: from 1, in characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkitools.edits.source import Text
from nkitools.lint.module import Module, Unreadable, read
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
    source = Text(text)
    found = suggestions(finding, text, module)
    return [{"title": each.title, "edits": [source.plain(one) for one in each.edits]} for each in found]
