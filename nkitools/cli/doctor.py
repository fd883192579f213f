"""``nkitools doctor``: what this machine has."""

from __future__ import annotations

import json
from itertools import groupby

import click

from nkitools.cli.terminal import console


@click.command("doctor")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def examine_machine(form: str) -> None:
    """Say what is installed, which simulators and devices are here, what each enables, and how to get the rest."""
    from nkitools.targets.examination import Part, as_plain, examine

    parts = examine()
    if form == "json":
        click.echo(json.dumps(as_plain(parts), indent=2))
        return
    from rich.text import Text

    terminal = console()
    width = max(len(part.name) for part in parts)

    def area(part: Part) -> str:
        return part.area

    for name, of_area in groupby(parts, area):
        terminal.print(Text(name, "bold"))
        for part in of_area:
            mark = ("yes ", "green") if part.present else ("no  ", "yellow")
            if name == "Environment":  # a variable that is not set is nothing missing
                mark = ("set ", "green") if part.present else ("    ", "")
            terminal.print(Text.assemble("  ", mark, f"{part.name:{width}}  {part.found}"))
            terminal.print(Text(f"      {'':{width}}  {part.enables}", "dim"))
            if part.remedy:
                terminal.print(Text(f"      {'':{width}}  {part.remedy}", "cyan"))
