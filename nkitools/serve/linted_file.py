"""A file linted for a coding agent: its findings and their suggestions, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkitools.lint.module import Unreadable, read
from nkitools.report.findings import finding_as_plain
from nkitools.serve.open_files import OpenFiles
from nkitools.suggestions.plain import suggestions_as_plain

Plain = dict[str, Any]


def linted(request: Plain) -> Plain:
    """Return the ``findings`` in a ``file``, else ``error``: why it cannot be read. Nothing of it is kept."""
    file = Path(request["file"])
    try:
        text = read(file)
    except Unreadable as error:
        return {"error": f"{request['path']}: {error}"}
    found = OpenFiles().put(file, text)
    return {
        "findings": [
            {**finding_as_plain(each), "suggestions": suggestions_as_plain(each, text, found.module)}
            for each in found.findings
        ]
    }
