"""The files that a call has read: those of imported modules, and those that it has opened."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nkitools.authors_code.known_modules import is_installed
from nkitools.platforms import KERNEL_FILES

_OURS = str(Path(__file__).parents[1])
_NO_FILES = (*KERNEL_FILES, _OURS)
_WRITING = ("w", "a", "x")
_open_blocks: list[set[str]] = []
_is_hooked = False


@contextmanager
def files_read() -> Iterator[set[str]]:
    """Collect the files that the body opens to read, and at its end those of the author's imported modules."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_note)  # which cannot be removed
        _is_hooked = True
    found: set[str] = set()
    _open_blocks.append(found)
    try:
        yield found
    finally:
        _open_blocks.remove(found)
        modules = (getattr(each, "__file__", None) for each in list(sys.modules.values()))
        found |= {each for each in modules if isinstance(each, str)}
        kept = {os.path.abspath(each) for each in found if _is_of_author(os.path.abspath(each))}
        found.clear()
        found |= kept


def _note(event: str, args: tuple[Any, ...]) -> None:
    """Note a file that is opened (`sys.addaudithook`)."""
    if event != "open" or not _open_blocks:
        return
    path, mode, flags = args
    is_written = mode.startswith(_WRITING) if isinstance(mode, str) else bool(flags & (os.O_WRONLY | os.O_RDWR))
    if isinstance(path, (str, bytes)) and not is_written:
        for each in _open_blocks:
            each.add(os.fsdecode(path))


def _is_of_author(path: str) -> bool:
    return not (path.startswith(_NO_FILES) or is_installed(path) or "__pycache__" in path)


def contents(files: Iterator[str] | list[str] | set[str]) -> dict[str, str]:
    """Return a hash of each file's content; '' for what is no file, or is gone."""
    return {each: _content(each) for each in sorted(files)}


def changed(before: Mapping[str, str]) -> list[str]:
    """Return the files whose content has changed."""
    return [each for each, content in before.items() if _content(each) != content]


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if os.path.isfile(path) else ""
    except OSError:
        return ""
