"""A file linted for a coding agent: its findings and their suggestions, tried by lint, as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkitools.lint.module import Unreadable, read
from nkitools.report.findings import with_suggestions
from nkitools.serve.open_files import OpenFiles
from nkitools.serve.tried_edits import tried_by_lint

Plain = dict[str, Any]


def linted(request: Plain) -> Plain:
    """Return the ``findings`` in a ``file``, or as ``error`` why it cannot be read. Nothing of the file is kept."""
    file = Path(request["file"])
    try:
        text = read(file)
    except Unreadable as error:
        return {"error": f"{request['path']}: {error}"}
    found = OpenFiles().put(file, text).findings
    return {"findings": with_suggestions(found, tried_by_lint(found))}
