"""``nkitools bisect``: the one edit that makes a wrong kernel right."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.load_run import read_run
from nkitools.cli.shared_options import chip_option, inputs_option, json_option, set_option, version_option
from nkitools.cli.sweep import progress_line
from nkitools.cli.terminal import printing_apart, say, say_json
from nkitools.kernel_file import Asked, asked, load, seen
from nkitools.kernel_settings import without_settings

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.repair.answers import Answer
    from nkitools.why.traced_calls import Call


@click.command("bisect", short_help="Find one edit that makes a wrong kernel right.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@inputs_option
@set_option
@chip_option
@version_option
@click.option(
    "--against", metavar="OTHER", help="Another kernel, FILE::KERNEL, or the file of an earlier run, that is right."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds that the search for an edit may take, besides the watched runs before it.",
)
@click.option("--diff", "as_diff", is_flag=True, help="Print the edit as a patch, and nothing else.")
@click.option("--apply", "applies", is_flag=True, help="Write the edit into the kernel's file, after asking.")
@click.option(
    "--sarif", "as_sarif", is_flag=True, help="Print a log for code scanning (SARIF 2.1.0), whose fix is the edit."
)
@json_option()
@click.pass_context
def find_first_wrong(
    context: click.Context,
    kernel: str,
    inputs: str | None,
    settings: dict[str, Any],
    against: str | None,
    seconds: float,
    as_diff: bool,
    applies: bool,
    as_sarif: bool,
    as_json: bool,
) -> None:
    """Find one edit of KERNEL of FILE after which its results are right.

    FILE has the arguments, `inputs`, and the right results: `reference`, an array or a function of the arguments, or
    `expect`, or both. `expect` is a dictionary of functions by the names of tensors in the kernel; each takes the
    arguments and, by keyword, the loop counters that it names. With --against the command shows the first difference
    from another kernel or run, and tries no edit. Edits run in separate processes, which write no files; on macOS,
    and for a JAX function that NumPy cannot evaluate, they run in the command's own process, which does not stop them
    from writing. FILE changes only with --apply. Exit code: 0 if nothing differs; 1 if something does, with or without
    an edit found, and if the kernel ends with an error; 2 for a mistake in the command.
    """
    from nkitools.targets.imports import stand_in
    from nkitools.why.traced_calls import Call

    file, name = seen(kernel, needs_inputs=inputs is None)
    for flag, is_given in {"--sarif": as_sarif, "--diff": as_diff, "--apply": applies}.items():
        if against is not None and is_given:
            raise click.UsageError(f"--against names a difference, no edit: leave {flag} out")
    if as_json + as_sarif + as_diff > 1:
        raise click.UsageError("--json, --sarif and --diff are forms of one answer: name one")
    with (
        printing_apart() if as_sarif else nullcontext(),
        stand_in("always"),
        asked(file, name, inputs, settings) as this,
    ):
        try:
            if against is not None:
                call = Call(_of_nki(this.kernel, name), this.args, this.kwargs)
                context.exit(_against(call, against, as_json=as_json))
            found = _answer(this, settings, seconds)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        plain = _log(found, this) if as_sarif else found.as_plain()
    if as_json or as_sarif:
        say_json(plain)
    elif as_diff:
        say(_patch(found))
    else:
        say("\n".join(found.lines()))
    if applies and found.kind != "right":
        _apply(found)
    context.exit(int(found.kind != "right"))


def _log(found: Answer, this: Asked) -> dict[str, Any]:
    """Return an answer as a log of code scanning."""
    from nkitools.authors_code.called_functions import plain_function
    from nkitools.facts import __version__
    from nkitools.report.sarif import repair_log

    code = getattr(plain_function(this.kernel), "__code__", None)
    place = (str(this.file.path), 1) if code is None else (code.co_filename, code.co_firstlineno)
    return repair_log(found.as_plain(), str(found), place, Path.cwd(), __version__)


def _patch(found: Answer) -> str:
    return "" if found.trial is None else found.trial.patch(os.path.relpath(found.trial.part.file)).rstrip("\n")


def _apply(found: Answer) -> None:
    """Write an edit into its file, if the user agrees and the file has not changed since the search."""
    if found.trial is None:
        raise click.ClickException("there is no edit to apply")
    file = Path(found.trial.part.file)
    if file.read_text(encoding="utf-8") != found.trial.part.source.text:
        raise click.UsageError(f"{file} has changed since it was read: nothing is written")
    if click.confirm(f"write this edit into {os.path.relpath(file)}?", err=True):
        file.write_text(found.trial.text, encoding="utf-8")


def _of_nki(kernel: Any, name: str) -> Any:
    """Return a kernel; refuse a JAX function, whose Pallas calls have no instructions of NKI to compare."""
    from nkitools.targets.builtin import is_jax_function

    if is_jax_function(kernel):
        raise click.UsageError(
            f"{name} is a JAX function with Pallas calls, and --against goes through the instructions of NKI kernels. "
            "Give the file a `reference`, and leave --against out."
        )
    return kernel


def _answer(this: Asked, settings: dict[str, Any], seconds: float) -> Answer:
    from nkitools.repair.answers import answer_of
    from nkitools.targets.builtin import is_jax_function
    from nkitools.why.targets import Expected
    from nkitools.why.traced_calls import Call

    file = this.file
    if file.reference is None and not file.expect:
        raise click.UsageError(
            f"{file.path} has neither `reference`, the right results of the kernel, nor `expect`, the right "
            "values of its tensors"
        )
    reference = without_settings(file.reference, settings)
    right = {name: without_settings(each, settings) for name, each in file.expect.items()}
    with progress_line("edits") as progress:
        said = None if progress is None else lambda done, of: progress(done, 0, of)
        if not is_jax_function(this.kernel):
            call = Call(this.kernel, this.args, this.kwargs)
            return answer_of(call, Expected(reference, right, this.kwargs), seconds, progress=said)
        from nkitools.repair.jax_function import answer_of_jax

        if right:
            raise click.UsageError(f"{file.path}: `expect` is of tensors of NKI kernels; this is a JAX function")
        end = time.monotonic() + seconds
        return answer_of_jax(this.kernel, (this.args, this.kwargs), reference, end, progress=said)


def _against(call: Call, against: str, *, as_json: bool) -> int:
    """Print the first difference of a call from another kernel or an earlier run; return the exit code."""
    from nkitools.report.run_diff import compare_runs

    mine, other = call.watched(), _other_run(call, against)
    found = compare_runs(other, mine)
    if as_json:
        say_json(found.as_plain(), default=str)
        return int(bool(found.writes or found.outputs or found.ended))
    if found.writes is None and not found.outputs and found.ended is None:
        say(f"{call.name}: nothing differs from {against}")
        return 0
    lines = [f"the first {found.ended[0]}, the second {found.ended[1]}"] if found.ended else []
    if found.writes is not None:
        lines += ["first different write: " + found.writes.lines()[0], *found.writes.lines()[1:]]
    say("\n".join([*lines, *(line for output in found.outputs for line in output.lines())]))
    return 1


def _other_run(call: Call, against: str) -> Run:
    from nkitools.why.traced_calls import Call

    if "::" not in against:
        if not Path(against).is_file():
            raise click.UsageError(f"{against} is no file: name FILE::KERNEL or a saved run")
        return read_run(against)
    file, name = seen(against, needs_inputs=False)
    return Call(_of_nki(load(file).kernel(name), name), call.args, call.kwargs, chip=call.launch.chip).watched()
