"""``nkitools view``: the page of a saved run, of the runs of a script, or of a report directory."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.save_runs import NewFile, must_be_writable, numbered
from nkitools.cli.shared_options import chip_option, sum_order_option, version_option
from nkitools.cli.terminal import say
from nkitools.facts import options

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument
    from nkitools.record.run import Run


@click.command(
    "view",
    short_help="Write a run as a page that shows it from the inside.",
    cls=ArrayCommand,
    context_settings={"allow_interspersed_args": False},
)
@click.option("-o", "--output", metavar="FILE", type=NewFile(), help="The file of the page.  [default: RUN.html here]")
@click.option(
    "--expected",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What the outputs should be: a .npy file, or an .npz file with one array for each output, in order.",
)
@click.option("--open/--no-open", "opens", default=False, help="Open the page in the browser.")
@chip_option
@version_option
@sum_order_option
@click.argument("run", metavar="RUN", type=click.Path(exists=True, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def view_run(
    context: click.Context, output: Path | None, expected: Path | None, opens: bool, run: Path, args: tuple[str, ...]
) -> None:
    """Write RUN as a page: one HTML file that shows it from the inside and needs nothing else.

    RUN is a file of `nkitools run --save` or run.save(); a Python script, which is run with its ARGS; or a directory
    of `pytest --nki-report`, which gets an index.html inside. Other pages go into the current directory, one for each
    run: RUN.html, of several runs RUN-1.html, RUN-2.html, ... Exit code: that of the script; if that is 0
    and no kernel ran, 1; 2 for a mistake in the command.
    """
    if args and (run.is_dir() or run.suffix != ".py"):
        if args[0].startswith("-"):
            raise click.UsageError(f"options stand before RUN: nkitools view {' '.join(args)} {run}")
        raise click.UsageError(f"{run} is no script that could take arguments: {' '.join(args)}")
    for name in ("chip", "nki_version", "sum_order"):
        if context.params[name] is not None and (run.is_dir() or run.suffix != ".py"):
            raise click.UsageError(f"--{name.replace('_', '-')}: {run} has been run already; it is of a script alone")
    if run.is_dir():
        if expected is not None:
            raise click.UsageError(f"--expected: {run} is a directory of pages, which have been compared already")
        _done([_index(run, output)], opens)
        return
    arrays = None if expected is None else _arrays(expected)
    code = 0
    if output is None:
        must_be_writable(Path.cwd())
    if run.suffix == ".py":
        code, runs = _run_script(run, args)
        if not runs:
            say(f"nkitools: {run} has run no kernel, there is nothing to show", err=True)
            context.exit(code or 1)
    else:
        from nkitools.cli.load_run import read_run

        runs = [read_run(str(run))]
    _done(_pages(runs, output or Path(f"{run.stem}.html"), arrays), opens)
    context.exit(code)


def _run_script(script: Path, args: tuple[str, ...]) -> tuple[int, list[Run]]:
    from nkitools.cli.script import execute
    from nkitools.record.run_listeners import collect_runs
    from nkitools.record.watch.watching import watching
    from nkitools.targets.imports import stand_in

    base = os.getcwd()  # the script may go elsewhere
    try:
        with stand_in(str(options.value("stand_in"))), collect_runs() as runs, watching():
            code = execute(str(script), args)
    finally:
        os.chdir(base)
    sys.stdout.flush()
    return code, list(runs)


def _arrays(path: Path) -> Any:
    """Return the arrays of a file. UsageError if it has none."""
    from zipfile import BadZipFile

    import numpy as np

    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if "run.json" in getattr(found, "files", ()):
                raise click.UsageError(f"--expected: {path} is a saved run; nkitools diff --page FILE compares two")
            return [found[name] for name in found.files] if hasattr(found, "files") else found
    except (ValueError, OSError, EOFError, KeyError, BadZipFile) as error:
        raise click.UsageError(f"--expected: {path} is no .npy or .npz file of arrays: {error}") from None


def _pages(runs: Sequence[Run], path: Path, expected: Argument | None) -> list[Path]:
    """One page a run: ``giou.html``, of several runs ``giou-1.html``, ``giou-2.html``, ..."""
    from nkitools.report.page import write_page

    paths = numbered(path, len(runs))
    for run, file in zip(runs, paths, strict=True):
        write_page(run, file, expected)
    return paths


def _index(directory: Path, output: Path | None) -> Path:
    from nkitools.report.page.index import write_index

    path = output or directory / "index.html"
    tests, skipped = write_index(directory, path)
    for problem in skipped:
        say(f"nkitools: left out: {problem}", err=True)
    if not tests:
        raise click.UsageError(f"{directory} has no reports of tests; write them with pytest --nki-report={directory}")
    return path


def _done(paths: Sequence[Path], opens: bool) -> None:
    for path in paths:
        say(str(path))
    if opens and paths:
        webbrowser.open(paths[0].absolute().as_uri())
