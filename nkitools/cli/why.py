"""``nkitools why``: what an element of a saved run was made of."""

from __future__ import annotations

import click

from nkitools.cli.commands import ArrayCommand, FileError
from nkitools.cli.load_run import read_run
from nkitools.cli.shared_options import json_option
from nkitools.cli.terminal import say, say_json


@click.command("why", short_help="Say what an element of a result was made of.", cls=ArrayCommand)
@click.option("--element", required=True, metavar="I,J", help="The element: 3,17. A range of them: 0:4,17.")
@click.option(
    "--output", metavar="NAME", help="A tensor's name, or the number of a result.  [default: the first result]"
)
@json_option()
@click.argument("run", metavar="RUN")
def explain_element(element: str, output: str | None, as_json: bool, run: str) -> None:
    """Say what an element of a result of a saved RUN was made of: line by line back to the arguments.

    Each line has its values if the run was saved with `nkitools run --watch`. Exit code: 0; 2 for an element or
    result that the run does not have.
    """
    loaded = read_run(run)
    try:
        found = loaded.why(_output(output), _index(element))
        if as_json:
            say_json(found.as_plain(), allow_nan=False)
        else:
            say(found.text())
    except (ValueError, IndexError) as error:
        raise FileError(str(error)) from None


def _output(text: str | None) -> int | str:
    if text is None:
        return 0
    return int(text) if text.isdecimal() else text


def _index(text: str) -> tuple[int | slice, ...]:
    """Return ``3,17`` and ``0:4,17`` as NumPy takes them. ValueError for anything else."""
    try:
        return tuple(_part(each.strip()) for each in text.strip("[] ").split(","))
    except ValueError:
        raise ValueError(f"--element {text}: must be whole numbers or ranges, 3,17 or 0:4,17") from None


def _part(text: str) -> int | slice:
    if ":" not in text:
        return int(text)
    first, last = text.split(":")
    return slice(int(first) if first else None, int(last) if last else None)
