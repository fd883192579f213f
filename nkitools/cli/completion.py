"""``nkitools completion``: the line that lets a shell complete commands, options and values."""

from __future__ import annotations

import click

_LINES = {
    "bash": 'eval "$(_NKITOOLS_COMPLETE=bash_source nkitools)"    # in ~/.bashrc',
    "zsh": 'eval "$(_NKITOOLS_COMPLETE=zsh_source nkitools)"    # in ~/.zshrc',
    "fish": "_NKITOOLS_COMPLETE=fish_source nkitools | source    # in ~/.config/fish/completions/nkitools.fish",
}


@click.command("completion", short_help="Print a shell's line that completes commands and options.")
@click.argument("shell", type=click.Choice(tuple(_LINES)))
def show_completion(shell: str) -> None:
    """Print the line that lets SHELL complete commands, options, rules and choices with the tab key.

    Its comment names the file of the shell into which the line goes; nothing is installed.
    """
    click.echo(_LINES[shell])
