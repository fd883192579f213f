"""Text for people: coloured in a terminal, plain when piped or under NO_COLOR, never wrapped or reinterpreted."""

from __future__ import annotations

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


def console(*, stderr: bool = False) -> Console:
    """Return where to print. Brackets are brackets: messages are full of shapes; control characters are escapes."""
    from rich.console import Console

    class Shown(Console):
        def render_str(self, text: str, **forms: Any) -> Text:
            return super().render_str(shown(text), **forms)

    return Shown(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
