"""Text for people: coloured in a terminal, plain when piped or under NO_COLOR, never wrapped or reinterpreted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from nkitools.rules.shown_text import shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "hint": "cyan"}


def say(text: str, *, err: bool = False) -> None:
    """Write lines of text, with what would command a terminal escaped."""
    click.echo(shown(text), err=err)


_answers: list[list[str]] = []  # of a command that answers in JSON, while it runs


@contextmanager
def printing_apart() -> Iterator[None]:
    """Let all that is printed go to stderr, also by other processes and by C code; then print what `say_json` had."""
    said: list[str] = []
    _answers.append(said)
    try:
        with redirect_stdout(sys.stderr), _file_of_stdout_apart():
            yield
    finally:
        _answers.remove(said)
        for text in said:
            click.echo(text)


@contextmanager
def _file_of_stdout_apart() -> Iterator[None]:
    """Let the file 1 of this process be that of stderr, where there are both."""
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # closed ones
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def say_json(value: Any, **forms: Any) -> None:
    """Write a value as JSON, after the command where `printing_apart` holds."""
    text = json.dumps(value, **{"indent": 2, **forms})
    if _answers:
        _answers[-1].append(text)
    else:
        click.echo(text)


def console(*, stderr: bool = False) -> Console:
    """Return the console to print on. It takes brackets literally, as messages have shapes, and escapes control
    characters.
    """
    from rich.console import Console

    class Shown(Console):
        def render_str(self, text: str, **forms: Any) -> Text:
            return super().render_str(shown(text), **forms)

    return Shown(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
