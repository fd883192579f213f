"""Saved runs that a command is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nkitools.cli.commands import FileError, read_file

if TYPE_CHECKING:
    from nkitools.record.run import Run


def read_run(path: str) -> Run:
    """Return the run saved in a file. FileError, exit code 2, if it is no saved run."""
    from nkitools.record.run import load_run
    from nkitools.record.saved.loading import SavedRunError

    read_file(path)
    try:
        return load_run(path)
    except SavedRunError as error:
        raise FileError(str(error)) from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
