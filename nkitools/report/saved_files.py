"""Runs of a script or a test as files, one a run; how a file is laid out says `nkitools.record.saved.saving`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkitools.record.run import Run


def save_runs(runs: Sequence[Run], path: str | os.PathLike[str]) -> list[Path]:
    """Write each run to a file of its own and return the files.

    One run becomes ``path`` itself; several become ``giou-1.json``, ``giou-2.json``, ... of ``giou.json``, in order.
    OSError where a file cannot be written.
    """
    path = Path(path)
    files = [path] if len(runs) == 1 else [numbered(path, number) for number in range(1, len(runs) + 1)]
    for run, file in zip(runs, files, strict=True):
        run.save(file)
    return files


def numbered(path: Path, number: int) -> Path:
    """``giou-2.json`` for ``giou.json`` and 2."""
    return path.with_name(f"{path.stem}-{number}{path.suffix}")
