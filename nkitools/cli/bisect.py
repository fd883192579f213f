"""``nkitools bisect``: the first line and turn where a kernel goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.load_run import read_run
from nkitools.cli.terminal import say
from nkitools.kernel_file import KernelFile, load, seen

if TYPE_CHECKING:
    from nkitools.record.run import Run
    from nkitools.why.bisection import Bisection
    from nkitools.why.traced_calls import Call


@click.command("bisect", short_help="Find the first line and turn where a kernel goes wrong.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="Arguments, by name, in an .npz file.")
@click.option("--chip", metavar="NAME", help="trn1, inf2, trn2 or trn3.  [default: the option's]")
@click.option(
    "--against", metavar="OTHER", help="Another kernel, FILE::KERNEL, or the file of an earlier run, that is right."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def find_first_wrong(
    context: click.Context, kernel: str, inputs: str | None, chip: str | None, against: str | None, as_json: bool
) -> None:
    """Find the first line and turn where KERNEL of FILE goes wrong.

    FILE says the arguments as for `nkitools compare`, and what the kernel should compute: `reference`, an array or a
    function of the arguments, and `expect`, a dictionary of functions by the names of tensors in the kernel, which take
    the arguments and, by keyword, the loop counters that they name. Exit code: 0 where nothing differs, 1 where
    something does, 2 for a mistake in the command.
    """
    from nkitools.targets.imports import stand_in
    from nkitools.why.traced_calls import Call

    file, name = seen(kernel, needs_inputs=inputs is None)
    with stand_in("always"):
        loaded = load(file)
        args, kwargs = loaded.inputs(inputs)
        try:
            call = Call(_of_nki(loaded.kernel(name), name), args, kwargs, chip=chip)
            if against is not None:
                context.exit(_against(call, against, as_json=as_json))
            found = _bisection(call, loaded, kwargs)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(json.dumps(found.as_plain(), indent=2))
    else:
        say("\n".join(found.lines()))
    context.exit(int(found.kind != "right"))


def _of_nki(kernel: Any, name: str) -> Any:
    """Return a kernel; refuse a JAX function, whose Pallas calls have no instructions of NKI to go through."""
    from nkitools.targets.builtin import is_jax_function

    if is_jax_function(kernel):
        raise click.UsageError(
            f"{name} is a JAX function with Pallas calls, and bisect goes through the instructions of NKI kernels. "
            f"nkitools.pallas.check({name}, ..., reference=...) names the blocks that differ, the grid point that "
            "wrote them and the index map that is wrong; run_kernel(..., reference=...) does so in a test."
        )
    return kernel


def _bisection(call: Call, file: KernelFile, kwargs: dict[str, Any]) -> Bisection:
    from nkitools.why.bisection import bisection_of
    from nkitools.why.targets import Expected

    if file.reference is None and not file.expect:
        raise click.UsageError(
            f"{file.path} has neither `reference`, the right results of the kernel, nor `expect`, the right "
            "values of its tensors"
        )
    return bisection_of(call, Expected(file.reference, file.expect, kwargs))


def _against(call: Call, against: str, *, as_json: bool) -> int:
    """Print where a call first differs from another kernel or an earlier run; return the exit code."""
    from nkitools.report.run_diff import compare_runs

    mine, other = call.watched(), _other_run(call, against)
    found = compare_runs(other, mine)
    if as_json:
        click.echo(json.dumps(found.as_plain(), indent=2, default=str))
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
