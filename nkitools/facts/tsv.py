"""Tables in files: a line of names, then rows, their fields parted by tabs."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, each by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
