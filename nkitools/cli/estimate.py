"""``nkitools estimate``: how long a kernel takes, without a device."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.shared_options import chips_option, inputs_option, json_option, set_option, version_option
from nkitools.cli.terminal import say, say_json
from nkitools.cli.tune import print_variants
from nkitools.kernel_file import asked, seen
from nkitools.kernel_settings import texts_of

if TYPE_CHECKING:
    from nkitools.record.run import Run

Settings = dict[str, Any]
_Shown = tuple[list[dict[str, Any]], list[str]]  # the JSON objects, and the pages of text


@click.command("estimate", short_help="Estimate how long a kernel takes, and which line is why.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@chips_option
@inputs_option
@set_option
@version_option
@click.option(
    "--measured",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR|FILE",
    help="A profile of Neuron Explorer, as Parquet, or a file of --benchmark-json, to show beside the estimate.",
)
@click.option(
    "--join",
    "calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --measured: keep the latency in this calibration file.",
)
@click.option("--as-written", is_flag=True, help="Count loads too that the compiler is assumed to leave out.")
@click.option("--tune", is_flag=True, help="Rank the variants of FILE's `settings` instead.")
@click.option(
    "--against",
    "base",
    metavar="BASE",
    help="Show the estimate of FILE as this commit has it, beside, and the lines that differ.",
)
@click.option("--since", metavar="BASE", hidden=True)  # the earlier name of --against
@json_option("Print one JSON object for each chip, in a list.")
@click.pass_context
def estimate_kernel(
    context: click.Context,
    kernel: str,
    chips: tuple[str, ...],
    inputs: str | None,
    settings: Settings,
    measured: Path | None,
    calibration: Path | None,
    as_written: bool,
    tune: bool,
    base: str | None,
    since: str | None,
    as_json: bool,
) -> None:
    """Estimate the time of KERNEL of FILE, the engine that bounds it, and the time of each line.

    The kernel runs in simulation, and its instructions are scheduled by their costs and dependences. FILE has the
    arguments: `inputs`, a tuple of arrays, a dictionary by name, or a function that returns one. ``--set BLOCK=512``
    estimates a variant: it sets a keyword of the kernel, a parameter of ``inputs`` or a constant. Several chips are
    shown side by side, after the page of the first one. With ``--measured`` the chip is the profile's, if the profile
    names its instance. ``--tune`` ranks the variants of FILE's ``settings``, as `nkitools tune` does. ``--against``
    compares with an earlier commit of FILE's repository; in GitHub Actions the table is added to the job's summary,
    too. A kernel that breaks a rule is estimated all the same, with the finding on stderr.
    """
    file, name = seen(kernel, needs_inputs=inputs is None)
    if base is not None and since not in (None, base):
        raise click.UsageError("--since is the earlier name of --against: give one of them")
    base = since if base is None else base
    if as_written and (tune or base is not None or measured is not None):
        raise click.UsageError("--as-written goes without --tune, --against and --measured")
    if calibration is not None and measured is None:
        raise click.UsageError("--join keeps a measured latency: name its profile, --measured DIR")
    if base is not None and (tune or measured is not None or inputs is not None):
        raise click.UsageError(
            "--against compares estimates of FILE's own inputs, without --tune, --measured and --inputs"
        )
    if tune and measured is not None:
        raise click.UsageError("--tune ranks variants by their estimates, without --measured")
    if tune:
        print_variants(file, name, inputs, chips, settings, as_json=as_json)
        return
    if measured is None:
        plain, pages = _estimated(file, name, inputs, chips, settings, as_written=as_written)
    else:
        plain, pages = _beside_measured(file, name, inputs, chips, settings, measured, calibration)
    if base is not None:
        earlier = _at(base, file, name, chips, settings, context.params["nki_version"])
        plain = [{"before": one, "after": other} for one, other in zip(earlier, plain, strict=True)]
        pages = [_before_and_after(f"{file}::{name}", base, plain, Path(file))]
        _add_to_summary(pages[0])
    if as_json:
        say_json(plain, allow_nan=False)
        return
    for page in pages:
        say(page)


def _estimated(
    file: str, name: str, inputs: str | None, chips: tuple[str, ...], settings: Settings, *, as_written: bool
) -> _Shown:
    """Return the estimate on each chip, and a comparison if there are several."""
    from nkitools.report.estimate_text import estimate_text, side_by_side
    from nkitools.timing.estimate import estimate

    runs = runs_of(file, name, inputs, chips or (None,), settings)
    estimates = [estimate(each, as_written=as_written) for each in runs]
    pages = [estimate_text(estimates[0])]
    if len(estimates) > 1:
        pages.append("\n" + side_by_side(estimates))
    return [each.as_plain() for each in estimates], pages


def _beside_measured(
    file: str,
    name: str,
    inputs: str | None,
    chips: tuple[str, ...],
    settings: Settings,
    measured: Path,
    calibration: Path | None,
) -> _Shown:
    """Return the estimate beside a measurement: a file of ``--benchmark-json``, or the folder of a profile."""
    from nkitools.cli.measured import call_of, call_text, calls_of, chip_of, joined, profile_of
    from nkitools.report.estimate_text import estimate_text, measured_text
    from nkitools.timing.measured import beside

    source: Any  # of the latency that joins a calibration
    if measured.is_file():
        calls, own = calls_of(measured, name, chips)
        (run,) = runs_of(file, name, inputs, [own], settings)
        estimate = run.estimate()
        source = call_of(run, calls)
        plain, text = source.as_plain(), call_text(source, estimate)
    else:
        source = profile_of(measured)
        (run,) = runs_of(file, name, inputs, [chip_of(source, chips)], settings)
        estimate = run.estimate()
        found = beside(run, estimate, source)
        plain, text = found.as_plain(), measured_text(found)
    pages = [estimate_text(estimate), "\n" + text]
    if calibration is not None:
        pages.append(joined(calibration, run, estimate, source, settings, measured))
    return [{**estimate.as_plain(), "measured": plain}], pages


def _at(
    base: str, file: str, name: str, chips: tuple[str, ...], settings: Settings, version: str | None
) -> list[dict[str, Any]]:
    """Return the estimates of a kernel as a commit has it, from a process of its own: its modules are other ones."""
    from nkitools.cli.since import files_at
    from nkitools.processes import output_of

    with files_at(Path(file), base) as path:
        command = [sys.executable, "-m", "nkitools", "estimate", f"{path}::{name}", "--json", "--chip", ",".join(chips)]
        command += [f"--set={each}" for each in texts_of(settings)]
        command += [f"--nki-version={version}"] if version else []
        done = output_of(command)
        if done.end.status:
            said = done.stderr.splitlines() or ["no reason given"]
            raise click.ClickException(f"{name} of {base} cannot be estimated: {said[-1]}")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def _before_and_after(kernel: str, base: str, pairs: Sequence[dict[str, Any]], file: Path) -> str:
    """Return a table in Markdown, each chip's latency before and after with its band, and the lines that differ."""
    from nkitools.cli.since import line_map
    from nkitools.report.estimate_text import changed_lines_text

    lines = [f"Estimate of `{kernel}` against {base}", "", "| chip | before | after | change |", "|---|---:|---:|---:|"]
    for pair in pairs:
        before, after = pair["before"], pair["after"]
        change = after["latency_us"] / before["latency_us"] - 1
        cells = [
            f"{each['latency_us']:.1f} us ({each['lower_us']:.1f} to {each['upper_us']:.1f})" for each in pair.values()
        ]
        lines.append(f"| {after['chip']} | {' | '.join(cells)} | {change:+.1%} |")
    now = line_map(file, base)
    for pair in pairs:
        changed = changed_lines_text(pair["before"]["critical_path"], pair["after"]["critical_path"], now)
        lines += ["", f"Lines of the critical path on {pair['after']['chip']}:", "", *changed] if changed else []
    return "\n".join(lines)


def _add_to_summary(text: str) -> None:
    """Add a text to the summary of the GitHub Actions job, if there is one."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")


def runs_of(file: str, name: str, inputs: str | None, chips: Sequence[str | None], settings: Settings) -> list[Run]:
    """Return the runs of a kernel of a file on each chip. UsageError if it cannot run or be estimated."""
    from nkitools.launch.simulate import simulate
    from nkitools.precision.runs import copied
    from nkitools.targets.imports import stand_in

    with stand_in("always"), asked(file, name, inputs, settings) as this:
        found = []
        for chip in chips:
            own, named = copied((this.args, this.kwargs))  # a kernel may write into its arguments
            try:
                found.append(simulate(this.kernel, *own, chip=chip, rules="report", **named))
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            broken = next((each for each in found[-1].findings if each.severity == "error"), None)
            if broken is not None:
                say(f"nkitools: the estimate is of a kernel that breaks a rule\n{broken.text()}", err=True)
            if not any(record.count for record in found[-1].all_records):
                raise click.UsageError(f"{name} has no instructions whose time could be estimated")
        return found
