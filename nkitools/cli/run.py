"""``nkitools run``: runs an unmodified script under the stand-in and summarises its kernels."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.save_runs import NewFile, saving
from nkitools.cli.shared_options import chip_option, sum_order_option, version_option
from nkitools.cli.terminal import SEVERITY_STYLES, console
from nkitools.dialects.import_hint import imports_nki
from nkitools.facts import options

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print
    from nkitools.record.run import Run
    from nkitools.report.run_counts import Tally


_READ_BY_RUNS = ("chip", "nki_version", "rules", "precision", "sum_order", "print_limit", "stand_in")


# Whatever follows the script is the script's, also what looks like an option.
@click.command(
    "run",
    short_help="Run a script where `import nki` finds the simulator.",
    cls=ArrayCommand,
    context_settings={"allow_interspersed_args": False},
)
@chip_option
@version_option
@sum_order_option
@click.option("--rules", type=click.Choice(options.OPTIONS["rules"].choices), help=options.OPTIONS["rules"].described)
@click.option(
    "--precision", type=click.Choice(options.OPTIONS["precision"].choices), help=options.OPTIONS["precision"].help
)
@click.option("--save", type=NewFile(), metavar="FILE", help="Save the run, for `nkitools diff` and others.")
@click.option("--json", "plain", type=NewFile(), metavar="FILE", help="Write the runs as JSON.")
@click.option("--watch", multiple=True, metavar="NAME", help=options.OPTIONS["watch"].help)
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run_script(
    context: click.Context,
    rules: str | None,
    precision: str | None,
    save: Path | None,
    plain: Path | None,
    watch: tuple[str, ...],
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with its ARGS, as python does; `import nki` and `import neuronxcc.nki` find the simulator.

    Device prints go to stdout as they come; at the end a summary of kernels, prints and findings goes to stderr. The
    exit code is the script's if that is not 0; 1 if the script raised an exception, ended with findings that are
    errors, imports NKI and calls no kernel, or if its runs cannot be saved; else 0. --save keeps the run in a file; if
    several kernels run, FILE.json becomes FILE-1.json, FILE-2.json, ...
    """
    plain = plain and plain.absolute()  # the script may go elsewhere
    said = {"rules": rules, "precision": precision}
    said["watch"] = ",".join(watch) or None
    with options.override(**{name: value for name, value in said.items() if value is not None}), saving(save) as saved:
        code, tally, runs = _run_watched(script, args, _stand_in_policy())
    _show(tally)
    if plain is not None:
        _write_plain(plain, runs)
    is_idle = not code and not tally.kernels and _has_kernels(script)
    if is_idle:
        console(stderr=True).print(
            f"nkitools: {script} calls no kernel. A test file runs with `pytest -m sim`; a file of kernels takes a "
            "line that calls one",
            style="yellow",
        )
    context.exit(code or int(saved.failed or _has_open_errors(tally) or is_idle))


def _stand_in_policy() -> str:
    """Return the option ``stand_in``; every option that a run may read is checked before it begins."""
    try:
        values = {name: options.value(name) for name in _READ_BY_RUNS}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return str(values["stand_in"])


def _run_watched(script: str, args: tuple[str, ...], policy: str) -> tuple[int, Tally, list[Run]]:
    from nkitools.cli.script import execute
    from nkitools.record.prints.print_display import showing_prints
    from nkitools.record.run_listeners import collect_runs
    from nkitools.record.watch.probes import option_probes
    from nkitools.report.prints import show_print
    from nkitools.report.progress import showing_progress
    from nkitools.report.run_counts import tally_of
    from nkitools.targets.imports import stand_in

    base = os.getcwd()  # the script may go elsewhere
    with stand_in(policy), collect_runs() as runs, showing_progress(sys.stderr) as progress:

        def show(one: Print, _: bool) -> bool:
            with nullcontext() if progress is None else progress.hidden():
                show_print(one, sys.stdout)
            return True

        with showing_prints(show):
            code = execute(script, args)
    sys.stdout.flush()
    watched = option_probes(runs)
    for complaint in () if watched is None else watched.complaints():
        console(stderr=True).print(f"nkitools: {complaint}", style="yellow")
    return code, tally_of(runs, base), runs


def _write_plain(path: Path, runs: list[Run]) -> None:
    """Write the runs as docs/reference/json.md has them, in one object with its schema's number."""
    from nkitools.record.whole_file import write_whole
    from nkitools.report.findings import SCHEMA
    from nkitools.report.run_json import described
    from nkitools.serve.tried_edits import findings_of_run

    plain = [{**described(each), "findings": findings_of_run(each)} for each in runs]
    write_whole(path, json.dumps({"schema": SCHEMA, "runs": plain}, indent=2))


def _has_kernels(script: str) -> bool:
    """Return whether a script imports a dialect of kernels."""
    return imports_nki(Path(script).read_text(encoding="utf-8", errors="replace"))


def _has_open_errors(tally: Tally) -> bool:
    """Return whether an error-level finding was only collected; one that was raised the script has dealt with."""
    return any(finding.severity == "error" and not finding.raised for finding in tally.ranked())


def _show(tally: Tally) -> None:
    from nkitools.report.pictures import shows_blocks

    terminal = console(stderr=True)
    terminal.print(f"nkitools: {tally.sentence()}", style="bold")
    blocks = shows_blocks(sys.stderr)
    for finding in tally.ranked():
        headline, *rest = finding.lines(blocks=blocks)
        terminal.print(headline, style=SEVERITY_STYLES[finding.severity])
        for line in rest:
            terminal.print(line)
    for finding in tally.ranked("allowed"):
        terminal.print(finding.allowed_line())
