"""Text for people: coloured in a terminal, plain when piped or under NO_COLOR, never wrapped or reinterpreted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "hint": "cyan"}


def console(*, stderr: bool = False) -> Console:
    """Return where to print. Brackets are brackets: messages are full of shapes."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
