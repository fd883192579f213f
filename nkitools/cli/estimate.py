"""``nkitools estimate``: how long a kernel takes, without a device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from nkitools.cli.compare import file_and_kernel

if TYPE_CHECKING:
    from nkitools.record.time_estimate import Estimate


@click.command("estimate")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option("--chip", default="", metavar="A,B", help="Chips: trn1, inf2, trn2, trn3.  [default: the option's]")
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="Arguments, by name, in an .npz file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each chip, in a list.")
def estimate_kernel(kernel: str, chip: str, inputs: str | None, as_json: bool) -> None:
    """Estimate how long KERNEL of FILE takes, which engine bounds it, and which lines the time goes to.

    The kernel runs in simulation, and its instructions are scheduled by their costs and dependences. FILE says the
    arguments as for `nkitools compare`: `inputs`, a tuple of arrays, a dictionary by name, or a function that returns
    one. Several chips are shown side by side, after the page of the first one.
    """
    from nkitools.report.estimate_text import estimate_text, side_by_side

    file, name = file_and_kernel(kernel)
    chips = [each.strip() for each in chip.split(",") if each.strip()]
    estimates = _estimates(file, name, inputs, chips or [None])
    if as_json:
        click.echo(json.dumps([each.as_plain() for each in estimates], indent=2, allow_nan=False))
        return
    click.echo(estimate_text(estimates[0]))
    if len(estimates) > 1:
        click.echo("\n" + side_by_side(estimates))


def _estimates(file: str, name: str, inputs: str | None, chips: list[str] | list[None]) -> list[Estimate]:
    from nkitools.launch.simulate import simulate
    from nkitools.precision.runs import copied
    from nkitools.targets.comparison_worker import BadRequest, inputs_of, kernel_of, load
    from nkitools.targets.imports import stand_in

    with stand_in("always"):
        try:
            module = load(file)
            function = kernel_of(module, name)
            args, kwargs = inputs_of(module, inputs)
        except BadRequest as error:
            raise click.UsageError(str(error)) from None
        found = []
        for chip in chips:
            own, named = copied((args, kwargs))  # a kernel may write into its arguments
            try:
                found.append(simulate(function, *own, chip=chip, rules="report", **named).estimate())
            except ValueError as error:
                raise click.UsageError(str(error)) from None
        return found
