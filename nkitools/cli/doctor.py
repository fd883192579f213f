"""``nkitools doctor``: the packages, simulators and devices of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nkitools.cli.shared_options import json_option
from nkitools.cli.terminal import console, say_json

if TYPE_CHECKING:
    from nkitools.targets.examination import Part

# What people come for, and the part of a machine that decides it, as area and name.
_WISHES = (
    ("simulate NKI kernels of both dialects", "Simulators", "builtin"),
    ("check Pallas kernels", "Simulators", "pallas"),
    ("compile Pallas kernels for a TPU that is not here", "Packages", "libtpu"),
    ("build custom C++ operators, and simulate them", "Compilers", "C++"),
)


@click.command("doctor", short_help="Say what this machine can do, and what is missing.")
@json_option()
@click.option(
    "--hardware",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Run example kernels on the NeuronCore in every way that is here, and write one file to send in: "
    "nkitools-hardware.json in DIR.",
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def examine_machine(as_json: bool, hardware: Path | None, file: Path | None) -> None:
    """List the installed packages, simulators and devices, what each enables, and how to get the missing ones.

    With FILE, a script, a test file or a file of kernels, the last line is the command that runs it. The exit code is 0
    also if something is missing.
    """
    if hardware is not None:
        if as_json or file is not None:
            raise click.UsageError("--hardware writes a file of JSON by itself: leave --json and FILE out")
        from nkitools.cli.hardware_report import write_report

        click.echo(f"{write_report(hardware, click.echo)}: no path, host or user name is in it; read it and send it in")
        return
    from nkitools.field.file_command import command_for
    from nkitools.targets.examination import KNOWN, as_plain, examine

    command = "" if file is None else command_for(file)
    parts = examine()
    if as_json:
        say_json(as_plain(parts) | ({} if file is None else {"command": command}))
        return
    from rich.text import Text

    terminal = console()
    for line, style in _verdict(parts):
        terminal.print(line, style=style)
    terminal.print()
    width = max(len(part.name) for part in parts)

    def area(part: Part) -> str:
        return part.area

    for name, of_area in groupby(parts, area):
        terminal.print(Text(name, "bold"))
        for part in of_area:
            mark = ("yes ", "green") if part.present else ("no  ", "yellow")
            if name == KNOWN:
                mark = ("!   ", "yellow")
            if name == "Environment":  # a variable that is not set is nothing missing
                mark = ("set ", "green") if part.present else ("    ", "")
            terminal.print(Text.assemble("  ", mark, f"{part.name:{width}}  {part.found}"))
            terminal.print(Text(f"      {'':{width}}  {part.enables}", "dim"))
            if part.remedy:
                terminal.print(Text(f"      {'':{width}}  {part.remedy}", "cyan"))
    if command:
        terminal.print()
        terminal.print(Text(f"Run {file}:  {command}", "bold"), soft_wrap=True)


def _verdict(parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    """Yield lines with their styles: what is possible on this machine, what is not, and why."""
    known = {(part.area, part.name): part for part in parts}
    for wish, area, name in _WISHES:
        part = known.get((area, name))
        if part is None:
            continue
        if part.present:
            yield f"You can {wish}.", "green"
            continue
        why = f"{name} is not installed" if part.found == "not installed" else part.found
        remedy = f" ({part.remedy})" if part.remedy.startswith("pip ") else ""
        yield f"You cannot {wish}: {why}{remedy}.", "yellow"
    devices = [part for part in parts if part.area == "Devices"]
    here = [part.name for part in devices if part.present]
    if here:
        yield f"You can run tests on a device: {', '.join(here)} (pytest -m hw).", "green"
    elif devices:
        missing = ", ".join(part.found.partition(":")[0] for part in devices[:3])
        yield f"You cannot run tests on a device: {missing}.", "yellow"
