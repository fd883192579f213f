"""``nkitools diff``: two saved runs side by side."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.load_run import read_run
from nkitools.cli.shared_options import json_option
from nkitools.cli.terminal import console, say_json

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.report.run_diff import Comparison

_SHOWN = 10  # prints and findings that only one run has, unless all are asked for


def _from_zero(_: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value < math.inf:
        raise click.BadParameter(f"{value} is no number from 0 on", param=param)
    return value


@click.command("diff", short_help="Compare two saved runs: first difference, findings.", cls=ArrayCommand)
@click.option(
    "--rtol", type=float, callback=_from_zero, help="Allowed error relative to SECOND's value.  [default: by dtype]"
)
@click.option("--atol", type=float, callback=_from_zero, help="Allowed absolute error.  [default: by dtype]")
@click.option("--all", "every", is_flag=True, help="List all prints and findings that only one run has.")
@json_option()
@click.option("--page", type=click.Path(dir_okay=False), help="Write the page of SECOND with its differences.")
@click.argument("first")
@click.argument("second")
@click.pass_context
def diff_runs(
    context: click.Context,
    rtol: float | None,
    atol: float | None,
    every: bool,
    as_json: bool,
    page: str | None,
    first: str,
    second: str,
) -> None:
    """Compare two saved runs: show the first print and the first output elements that differ, and the lines that wrote
    them.

    FIRST and SECOND are files of `nkitools run --save` or `run.save(path)`. Two values are equal if they differ by no
    more than the coarser of their dtypes explains; --rtol and --atol replace that limit. Exit code: 0 if the prints,
    writes, outputs, findings and endings of the runs are equal, 1 if not, 2 for a mistake in the command and a file
    that is no saved run.
    """
    from nkitools.report.run_diff import compare_runs

    runs = read_run(first), read_run(second)
    found = compare_runs(*runs, rtol=rtol, atol=atol)
    if page is not None:
        _write_page(runs, page, first, rtol, atol)
    if as_json:
        say_json({"first": first, "second": second, **found.as_plain()}, allow_nan=False)
    else:
        _show(found, first, second, None if every else _SHOWN)
    context.exit(int(not found.is_same))


def _write_page(runs: tuple[Run, Run], path: str, name: str, rtol: float | None, atol: float | None) -> None:
    from nkitools.comparison.rule import Rule
    from nkitools.report.page import write_page
    from nkitools.report.page.differences import Against

    first, second = runs
    against = Against(first, os.path.basename(name), Rule(rtol, atol))
    write_page(second, path, first.outputs, rtol=rtol, atol=atol, against=against)


def _show(found: Comparison, first: str, second: str, limit: int | None) -> None:
    terminal = console()
    verdict = "the same" if found.is_same else "different"
    terminal.print(f"{first} and {second}: {verdict}", style="green" if found.is_same else "bold red")
    here = os.path.join(os.getcwd(), "")
    for line in _lines(found, limit):
        terminal.print(line.replace(here, ""))


def _lines(found: Comparison, limit: int | None) -> Iterator[str]:
    """Yield lines: the runs, their differences, prints and findings of only one, and counts of instructions."""
    for name, (one, other) in found.about.items():
        yield f"{name}: {one} and {other}"
    if found.ended is not None:
        yield f"the first {found.ended[0]}"
        yield f"the second {found.ended[1]}"
    for diverging in (found.prints, found.writes):
        if diverging is not None:
            headline, *rest = diverging.lines()
            yield f"first diverging {headline}"
            yield from rest
    for output in found.outputs:
        yield from output.lines()
    yield from _only("prints", found.prints_only, limit)
    yield from _only("findings", found.findings_only, limit)
    for name, (before, after) in found.instructions.items():
        yield f"instructions: {name} {before} and {after}"
    yield from found.notes


def _only(what: str, both: tuple[Sequence[str], Sequence[str]], limit: int | None) -> Iterator[str]:
    for which, texts in zip(("first", "second"), both, strict=True):
        if texts:
            yield f"{what} of the {which} run only: {len(texts)}"
            yield from (f"  {text}" for text in texts[:limit])
            if limit is not None and len(texts) > limit:
                yield f"  ... and {len(texts) - limit} more (--all lists them)"
