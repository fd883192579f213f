"""The group of all commands: the end of each one where Ctrl-C comes."""

from __future__ import annotations

from typing import Any

import click

INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C has ended


class Commands(click.Group):
    """The commands of the command line."""

    def invoke(self, ctx: click.Context) -> Any:  # click's own type
        """Run the command; Ctrl-C ends it with one line and exit code 130, wherever it comes."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("nkitools: interrupted", err=True)
            ctx.exit(INTERRUPTED)
