"""The Python files that paths name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_SKIPPED = frozenset({"__pycache__", "node_modules"})


def python_files(paths: Iterable[Path], is_excluded: Callable[[Path], bool]) -> list[Path]:
    """Files as they are named, and the ``*.py`` of directories, each file once; links to directories are not followed.

    Hidden directories and virtual environments are left out, and what ``is_excluded`` says of files in directories.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for each in (path,) if path.is_file() else _inside(path, is_excluded):
            found.setdefault(os.path.realpath(each), each)
    return list(found.values())


def _inside(directory: Path, is_excluded: Callable[[Path], bool]) -> Iterator[Path]:
    for name, directories, files in os.walk(directory):
        here = Path(name)
        directories[:] = sorted(each for each in directories if not _is_skipped(here / each, is_excluded))
        for each in sorted(files):
            path = here / each
            if path.suffix == ".py" and path.is_file() and not is_excluded(path):
                yield path


def _is_skipped(directory: Path, is_excluded: Callable[[Path], bool]) -> bool:
    hidden = directory.name.startswith(".") or directory.name in _SKIPPED
    return hidden or (directory / "pyvenv.cfg").exists() or is_excluded(directory)
