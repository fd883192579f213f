"""``nkitools run --save``: the runs of a script as files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from nkitools.cli.terminal import say


def must_be_writable(folder: Path) -> None:
    """Make a folder, and check that files can be made in it. OSError with the folder's name if not."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        error.filename = str(folder)
        raise


def numbered(path: Path, count: int) -> list[Path]:
    """Return a file for each of so many runs: ``path`` for one, ``giou-1.npz``, ``giou-2.npz``, ... for several."""
    names = (f"{path.stem}-{number}{path.suffix}" for number in range(1, count + 1))
    return [path] if count == 1 else [path.with_name(name) for name in names]


@dataclass
class Saving:
    """The state of saving runs: whether one of them could not be saved."""

    failed: bool = False


@contextmanager
def saving(path: Path | None) -> Iterator[Saving]:
    """Save the runs that start inside the block, and print the files on stderr; do nothing without ``path``.

    UsageError before anything runs if ``path`` cannot be a file.
    """
    from nkitools.record.run_listeners import collect_runs

    saved = Saving()
    if path is None:
        yield saved
        return
    path = path.absolute()  # the script may go elsewhere
    if path.is_dir() or not path.parent.is_dir():
        what = "is a directory" if path.is_dir() else f"cannot be written: there is no directory {path.parent}"
        raise click.UsageError(f"--save: {path} {what}")
    must_be_writable(path.parent)
    with collect_runs() as runs:
        yield saved
    try:
        files = numbered(path, len(runs))
        for run, file in zip(runs, files, strict=True):
            run.save(file)
    except OSError as error:
        saved.failed = True
        say(f"nkitools: the runs are not saved: {error}", err=True)
    else:
        named = files if len(files) < 4 else [files[0], "...", files[-1]]
        say(f"nkitools: saved {', '.join(map(str, named)) if files else 'nothing, no kernel has run'}", err=True)
