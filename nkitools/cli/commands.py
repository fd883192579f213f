"""The group of all commands: the end of each one where Ctrl-C comes, and where a saved run is damaged."""

from __future__ import annotations

import os
import traceback
from typing import Any

import click

from nkitools.rules.shown_text import shown, shown_line

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C has ended
_FILES = "nkitools.files"  # of a command's context: the saved runs that it has read


class FileError(click.ClickException):
    """The end of a command that cannot use a file: one sentence without the command's usage."""

    exit_code = 2


class Commands(click.Group):
    """The commands of the command line."""

    def invoke(self, ctx: click.Context) -> Any:  # click's own type
        """Run the command.

        Ctrl-C ends it with one line and exit code 130, wherever it comes. A file or folder that cannot be used is one
        sentence and exit code 2, and so is what fails behind the reading of a saved run.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("nkitools: interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except click.ClickException as error:
            vars(error)["message"] = shown(error.message)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.filename is not None:
                reason = error.strerror or str(error)
                raise FileError(shown_line(f"{error.filename} cannot be read or written: {reason}")) from None
            if _FILES not in ctx.meta:
                raise
            raise FileError(shown_line(_complaint(error, ctx.meta[_FILES]))) from None


def read_file(path: str) -> None:
    """Note that the command reads a saved run, whose damage may show later."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(_FILES, []).append(path)


def _complaint(error: Exception, files: list[str]) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = "a saved run that is" if len(files) == 1 else "saved runs, one of them"
    return (
        f"{' and '.join(files)}: {what} damaged, or a fault of nkitools: {type(error).__name__}: {error} "
        f"({os.path.basename(place.filename)}:{place.lineno})"
    )
