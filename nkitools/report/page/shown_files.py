"""The author's files as the page shows them: their names and the lines around those that matter."""

from __future__ import annotations

import os
from typing import Any

from nkitools.rules.shown_text import shown_file


def short_names(files: list[str]) -> dict[str, str]:
    """Return the last part of each path, and as many parts before it as make the paths distinct."""
    short = {file: shown_file(file, whole=False) or file for file in files}
    for depth in range(2, 6):
        names = list(short.values())
        for file, name in short.items():
            if names.count(name) > 1:
                short[file] = "/".join(file.replace(os.sep, "/").split("/")[-depth:])
    return short


_WHOLE, _AROUND = 2000, 60  # lines of a file that is shown whole; of a longer one, around those that matter


def excerpt(text: str, lines: list[int]) -> dict[str, Any]:
    """Return the lines of a file from the first on that the page shows."""
    found = text.split("\n")
    if found and not found[-1]:
        found.pop()
    if len(found) <= _WHOLE:
        return {"first": 1, "lines": found}
    first = max(1, min(lines) - _AROUND)
    last = max(lines) + _AROUND
    return {"first": first, "lines": found[first - 1 : last]}
