"""``nkitools estimate``: how long a kernel takes, without a device."""

from __future__ import annotations

import ast
import inspect
import json
from types import ModuleType
from typing import TYPE_CHECKING

import click

from nkitools.cli.compare import file_and_kernel
from nkitools.cli.terminal import say

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel, Setting
    from nkitools.record.time_estimate import Estimate


@click.command("estimate")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option("--chip", default="", metavar="A,B", help="Chips: trn1, inf2, trn2, trn3.  [default: the option's]")
@click.option("--inputs", type=click.Path(exists=True, dir_okay=False), help="Arguments, by name, in an .npz file.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A keyword of KERNEL, or a constant of FILE."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each chip, in a list.")
def estimate_kernel(kernel: str, chip: str, inputs: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Estimate how long KERNEL of FILE takes, which engine bounds it, and which lines the time goes to.

    The kernel runs in simulation, and its instructions are scheduled by their costs and dependences. FILE says the
    arguments as for `nkitools compare`: `inputs`, a tuple of arrays, a dictionary by name, or a function that returns
    one. ``--set BLOCK=512`` estimates a variant: with a keyword of the kernel, else with a constant of the file of this
    name. Several chips are shown side by side, after the page of the first one.
    """
    from nkitools.report.estimate_text import estimate_text, side_by_side

    file, name = file_and_kernel(kernel, inputs)
    chips = [each.strip() for each in chip.split(",") if each.strip()]
    estimates = _estimates(file, name, inputs, chips or [None], settings)
    if as_json:
        click.echo(json.dumps([each.as_plain() for each in estimates], indent=2, allow_nan=False))
        return
    say(estimate_text(estimates[0]))
    if len(estimates) > 1:
        say("\n" + side_by_side(estimates))


def _estimates(
    file: str, name: str, inputs: str | None, chips: list[str] | list[None], settings: tuple[str, ...]
) -> list[Estimate]:
    from nkitools.launch.simulate import simulate
    from nkitools.precision.runs import copied
    from nkitools.sweeps.variants import keywords_of
    from nkitools.targets.comparison_worker import BadRequest, inputs_of, kernel_of, load
    from nkitools.targets.imports import stand_in

    with stand_in("always"):
        try:
            module = load(file)
            function = kernel_of(module, name)
            _set(module, function, settings)
            args, kwargs = inputs_of(module, inputs)
            kwargs |= keywords_of(function, _settings(settings))
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


def _settings(settings: tuple[str, ...]) -> dict[str, Setting]:
    """Return the values by their names: Python's literals, else texts. UsageError for what is no NAME=VALUE."""
    found: dict[str, Setting] = {}
    for each in settings:
        name, separator, value = each.partition("=")
        if not separator or not name.isidentifier():
            raise click.BadParameter(f"{each}: write NAME=VALUE", param_hint="'--set'")
        try:
            found[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            found[name] = value
    return found


def _set(module: ModuleType, kernel: Kernel, settings: tuple[str, ...]) -> None:
    """Set constants of a file; UsageError for a name that is neither one nor a parameter of the kernel."""
    parameters = inspect.signature(kernel).parameters
    for name, value in _settings(settings).items():
        if name in parameters:
            continue
        if not hasattr(module, name):
            raise click.BadParameter(
                f"{name} is no parameter of the kernel and no constant of {module.__file__}", param_hint="'--set'"
            )
        setattr(module, name, value)
