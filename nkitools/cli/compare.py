"""``nkitools compare``: one kernel on two targets."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.load_run import read_run
from nkitools.cli.save_runs import must_be_writable
from nkitools.cli.shared_options import (
    chip_option,
    inputs_option,
    json_option,
    set_option,
    sum_order_option,
    version_option,
)
from nkitools.cli.terminal import console, say_json
from nkitools.facts import options
from nkitools.kernel_file import asked, seen
from nkitools.kernel_settings import texts_of

if TYPE_CHECKING:
    from nkitools.record.explained_errors import ExplainedErrors
    from nkitools.record.run import Run

_STDERR = 2  # what a process prints is no output of the command


@click.command("compare", short_help="Run a kernel on two targets and compare its results.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option(
    "--between", default="sim,hw", show_default=True, metavar="A,B", help="Two of sim, official, hw, neuron, tpu, gpu."
)
@inputs_option
@set_option
@chip_option
@version_option
@sum_order_option
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep arguments, runs and outputs here.")
@click.option("--rtol", type=click.FloatRange(0), help="Allowed error relative to B's value.  [default: by dtype]")
@click.option("--atol", type=click.FloatRange(0), help="Allowed absolute error.  [default: by dtype]")
@click.option(
    "--tolerance",
    type=click.Choice(["auto"]),
    help="auto: what the kernel's dtypes and sums explain.  [default: --rtol and --atol]",
)
@json_option()
@click.pass_context
def compare_targets(
    context: click.Context,
    kernel: str,
    between: str,
    inputs: str | None,
    settings: dict[str, Any],
    keep: Path | None,
    rtol: float | None,
    atol: float | None,
    tolerance: str | None,
    as_json: bool,
) -> None:
    """Run KERNEL of FILE on two targets and compare its results.

    FILE has the arguments: `inputs`, a tuple of arrays, a dictionary by name, or a function that returns one. If the
    results differ, the first differing element is shown with its tile, its loop counters and the line that wrote it,
    and an explanation: low precision, undefined input, a broken rule. With --tolerance auto the result is undecided if
    low precision explains the difference, but a tolerance as wide could hide a mistake. Exit code: 0 if the results
    agree, 1 if they differ or are undecided, or if a target crashes or runs out of time (NKITOOLS_TIMEOUT seconds), 2
    for a mistake in the command and a missing target.
    """
    from nkitools.report.agreement import agreement

    file, name = seen(kernel, needs_inputs=inputs is None)
    sides = _sides(between)
    _check_sides(context, sides)
    request = {"file": file, "kernel": name, "inputs": inputs, "settings": texts_of(settings)}
    if keep is not None:
        must_be_writable(keep)
    with tempfile.TemporaryDirectory() as scratch:
        place = keep or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        runs = [_run_of(side, request, place, keeps=keep is not None) for side in sides]
        full = place / "sim.run.full"
        explained = None if tolerance is None else _explained(file, name, inputs, settings)
        sentences, widest = [], None
        if explained is not None and rtol is None and atol is None:
            rtol, atol = explained.rtol, explained.atol
            widest = tuple(max(each.explained[place] for each in explained.outputs) for place in (0, 1))
        elif explained is not None:
            sentences = explained.sentences(rtol or 0.0, atol or 0.0)
        found = agreement(runs[0], runs[1], read_run(str(full)) if full.exists() else None, rtol=rtol, atol=atol)
        verdict = "agree" if found.is_same else "differ"
        if widest is not None and not found.is_same:
            within = agreement(runs[0], runs[1], None, rtol=widest[0], atol=widest[1])
            verdict = "undecided" if within.is_same else "differ"
    if keep is not None:
        _keep_outputs(keep, sides, runs)
    if as_json:
        plain = {"kernel": kernel, "between": sides, "verdict": verdict, **found.as_plain()}
        plain |= {} if explained is None else {"rtol": rtol, "atol": atol, "tolerance": sentences}
        say_json(plain, allow_nan=False)
    else:
        terminal = console()
        said = "are undecided" if verdict == "undecided" else verdict
        terminal.print(f"{name}: {sides[0]} and {sides[1]} {said}", style="green" if found.is_same else "bold red")
        for line in [*found.lines(), *([] if explained is None else str(explained).splitlines()), *sentences]:
            terminal.print(line, highlight=False, markup=False)
    context.exit(int(not found.is_same))


def _explained(file: str, name: str, inputs: str | None, settings: dict[str, Any]) -> ExplainedErrors:
    """Return the errors that the kernel's run on nkitools' simulator explains."""
    from nkitools.launch.simulate import simulate
    from nkitools.targets.imports import stand_in

    with stand_in("always"), asked(file, name, inputs, settings) as this:
        try:
            return simulate(this.kernel, *this.args, rules="off", **this.kwargs).tolerance()
        except ValueError as error:
            raise click.UsageError(str(error)) from None


def _sides(between: str) -> list[str]:
    from nkitools.targets.comparison_worker import SIDES

    sides = [each.strip() for each in between.split(",")]
    if len(sides) != 2 or sides[0] == sides[1] or not set(sides) <= set(SIDES):
        raise click.BadParameter(f"{between}: two different ones of {', '.join(SIDES)}", param_hint="'--between'")
    return sides


def _check_sides(context: click.Context, sides: list[str]) -> None:
    """Raise UsageError for an option of simulated runs if neither side is nkitools' simulator."""
    for name in ("chip", "nki_version", "sum_order"):
        if context.params[name] is not None and "sim" not in sides:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is what `sim` simulates, and --between {','.join(sides)} has no sim"
            )


def _run_of(side: str, request: dict[str, Any], place: Path, *, keeps: bool) -> Run:
    saved = place / f"{side}.run"
    request = {**request, "side": side, "save": str(saved), "options": dict(options.overrides() or {})}
    if keeps:
        request["keep"] = str(place / "inputs.npz")
    let_answer(side, request)
    return read_run(str(saved))


def let_answer(name: str, request: dict[str, Any]) -> None:
    """Answer a request in a separate process, into the request's file ``save``. UsageError if it cannot be answered.

    The process and its children end after the time limit. ``name``: of the answering program, for sentences.
    """
    from nkitools.processes import TimedOut, output_of

    command = [sys.executable, "-m", "nkitools.targets.comparison_worker", json.dumps(request)]
    try:
        output = output_of(command, float(str(options.value("timeout"))), stdout=_STDERR)
    except TimedOut as late:
        said = f"{name} {late} (NKITOOLS_TIMEOUT). Where it stands:\n{late.stacks}"
        raise click.ClickException(said) from None
    if output.end.status == 2:
        raise click.UsageError(output.stderr)
    if output.end.status or not Path(request["save"]).exists():
        raise click.ClickException(f"{name} failed ({output.end.described}):\n{output.stderr}")


def _keep_outputs(place: Path, sides: list[str], runs: list[Run]) -> None:
    import numpy as np

    from nkitools.record.saved.encoding import leaves

    for side, run in zip(sides, runs, strict=True):
        arrays: dict[str, Any] = {path: value for path, value in leaves(run.outputs) if isinstance(value, np.ndarray)}
        np.savez(place / f"{side}.npz", **arrays)
