"""Files that a command writes when its work is done, and ``nkitools run --save``: the runs of a script as files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class NewFile(click.Path):
    """The type of an option that names a file to write: refused before anything runs if it cannot be written."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; a pipe or a device is taken as it is."""
        super().convert(value, param, ctx)
        path = Path(value)
        if not path.parent.is_dir():
            self.fail(f"{path} cannot be written: there is no directory {path.parent}", param, ctx)
        if path.is_file() or not path.exists():
            must_be_writable(path.parent)
        return path


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
    """Save the runs that start inside the block, and print the files on stderr; do nothing without ``path``."""
    from nkitools.record.run_listeners import collect_runs

    saved = Saving()
    if path is None:
        yield saved
        return
    path = path.absolute()  # the script may go elsewhere
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
