"""The group of all commands; it ends a command at Ctrl-C and at a damaged saved run."""

from __future__ import annotations

import errno
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import click

from nkitools.kernel_file import BadRequest, failure
from nkitools.rules.shown_text import shown, shown_line

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C has ended
_FULL = (errno.ENOSPC, errno.EDQUOT)  # of a disk: a write does not name its file
_FILES = "nkitools.files"  # of a command's context: the saved runs that it has read


class FileError(click.ClickException):
    """The end of a command that cannot use a file: one sentence without the command's usage."""

    exit_code = 2


class ArrayCommand(click.Command):
    """A command that computes with arrays."""

    def invoke(self, ctx: click.Context) -> Any:  # click's own type
        """Run the command.

        NumPy is imported first: its extension modules would print Ctrl-C and turn it into another error.
        """
        with _ctrl_c_held_back():
            import_module("ml_dtypes")
        return super().invoke(ctx)


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the end."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    is_main = threading.current_thread() is threading.main_thread()
    held = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if held:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if held:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


class Commands(click.Group):
    """The commands of the command line, in the groups that ``--help`` shows."""

    def __init__(self, name: str, *, groups: Mapping[str, Sequence[click.Command]], **settings: Any) -> None:
        super().__init__(name, [each for group in groups.values() for each in group], **settings)
        self._groups = groups

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, group by group."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each group with what they do, in one column."""
        width = max(map(len, self.commands))
        for title, commands in self._groups.items():
            with formatter.section(title):
                rows = [(f"{each.name:{width}}", each.get_short_help_str(formatter.width)) for each in commands]
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:  # click's own type
        """Run the command.

        Ctrl-C ends it with one line and exit code 130. A file or folder that cannot be used gives one sentence and exit
        code 2, and so does a failure after the reading of a saved run.
        """
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            vars(error)["message"] = shown(error.message)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, BadRequest):
                raise click.UsageError(shown(str(error))) from None
            if interrupted(error):
                click.echo("nkitools: interrupted", err=True)
                ctx.exit(INTERRUPTED)
            if isinstance(error, OSError) and (error.filename is not None or error.errno in _FULL):
                what = "a file" if error.filename is None else error.filename
                reason = error.strerror or str(error)
                raise FileError(shown_line(f"{what} cannot be read or written: {reason}")) from None
            said = failure(error) if isinstance(error, Exception) else ""
            if said:
                raise click.ClickException(shown(said)) from None
            if _FILES not in ctx.meta:
                raise
            raise FileError(shown_line(_complaint(error, ctx.meta[_FILES]))) from None


def interrupted(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C: itself, or the end of an import or of a class that Ctrl-C has made fail."""
    cause: BaseException | None = error
    while isinstance(cause, ImportError) or (isinstance(cause, RuntimeError) and "__set_name__" in str(cause)):
        cause = cause.__cause__ or cause.__context__
    return isinstance(cause, KeyboardInterrupt)


def read_file(path: str) -> None:
    """Note that the command reads a saved run, whose damage may show later."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(_FILES, []).append(path)


def _complaint(error: BaseException, files: list[str]) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = "a saved run that is" if len(files) == 1 else "saved runs, one of them"
    return (
        f"{' and '.join(files)}: {what} damaged, or a fault of nkitools: {type(error).__name__}: {error} "
        f"({os.path.basename(place.filename)}:{place.lineno})"
    )
