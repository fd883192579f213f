"""A repository's state at another commit: which lines have changed since, and its files as they were."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path

import click

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def must_be_commit(base: str, path: Path) -> None:
    """UsageError if the repository of a file or folder has no commit ``base``, and if there is no repository."""
    folder = path if path.is_dir() else path.resolve().parent
    _git(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")


def changed_lines(path: Path, base: str) -> set[int] | None:
    """Return the lines of a file that changed since commit ``base``; None for all lines if git does not track the file.

    UsageError without a repository, or for an unknown commit.
    """
    folder = path.resolve().parent
    tracked = _git(folder, "ls-files", "--error-unmatch", path.name, may_fail=True)
    if tracked is None:
        must_be_commit(base, path)
        return None
    shown = _git(folder, "diff", "--unified=0", "--no-color", "--no-ext-diff", base, "--", path.name)
    found: set[int] = set()
    for first, count in _HUNK.findall((shown or b"").decode(errors="replace")):
        found.update(range(int(first), int(first) + (int(count) if count else 1)))
    return found


def line_map(path: Path, base: str) -> dict[int, int]:
    """Return where lines of a file that commit ``base`` has stand now, those that are still there."""
    with files_at(path, base) as before:
        blocks = SequenceMatcher(
            None, before.read_text().splitlines(), path.read_text().splitlines(), autojunk=False
        ).get_matching_blocks()
    return {old + at + 1: new + at + 1 for old, new, size in blocks for at in range(size)}


@contextmanager
def files_at(path: Path, base: str) -> Iterator[Path]:
    """Yield a file's path in a copy of its repository at commit ``base``. UsageError if the commit lacks it."""
    folder = path.resolve().parent
    top = Path((_git(folder, "rev-parse", "--show-toplevel") or b"").decode().strip())
    archive = _git(top, "archive", "--format=tar", base) or b""
    with tempfile.TemporaryDirectory(prefix="nkitools-base-") as scratch:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(scratch, filter="data")
        found = Path(scratch) / path.resolve().relative_to(top.resolve())
        if not found.is_file():
            raise click.UsageError(f"{path} is not there in {base}")
        yield found


def _git(folder: Path, *command: str, may_fail: bool = False) -> bytes | None:
    """Return git's output; None if it fails and ``may_fail``, else UsageError with git's words."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *command], capture_output=True, check=False)
    except FileNotFoundError:
        raise click.UsageError("there is no git on this machine") from None
    if done.returncode == 0:
        return done.stdout
    if may_fail:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise click.UsageError(
        f"git {command[0]}: {said[0] if said else 'no such commit: ' + command[-1].removesuffix('^{commit}')}"
    )
