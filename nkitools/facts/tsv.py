"""Tables in files: a line of names, then rows, their fields parted by tabs."""

from __future__ import annotations

import os


def rows_of(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows of a table, each by the names of its columns; cells that end a row may be left out.

    ValueError for a row with more cells than names.
    """
    with open(path, encoding="utf-8") as file:
        names, *rows = (line.split("\t") for line in file.read().splitlines() if line)
    return [dict(zip(names, [*row, *[""] * (len(names) - len(row))], strict=True)) for row in rows]
