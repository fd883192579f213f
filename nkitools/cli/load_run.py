"""Saved runs that a command is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nkitools.record.run import Run


def read_run(path: str) -> Run:
    """Return the run saved in a file; UsageError, exit code 2, where there is none."""
    from nkitools.record.run import load_run
    from nkitools.record.saved.loading import SavedRunError

    try:
        return load_run(path)
    except SavedRunError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror or error}") from None
