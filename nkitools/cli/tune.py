"""``nkitools tune``, and ``nkitools estimate --tune``: the settings of a kernel by their estimates."""

from __future__ import annotations

from typing import Any

import click

from nkitools.cli.commands import ArrayCommand
from nkitools.cli.shared_options import chips_option, inputs_option, json_option, set_option, version_option
from nkitools.cli.terminal import say, say_json
from nkitools.facts.case_space import Space, choices_of
from nkitools.kernel_file import asked, seen

Settings = dict[str, Any]


@click.command("tune", short_help="Rank the settings of a kernel by their estimates.", cls=ArrayCommand)
@click.argument("kernel", metavar="FILE::KERNEL")
@chips_option
@inputs_option
@set_option
@version_option
@json_option("Print a list with one JSON object for each variant.")
def tune_kernel(kernel: str, chips: tuple[str, ...], inputs: str | None, settings: Settings, as_json: bool) -> None:
    """Rank the variants of FILE's ``settings`` by their estimates, without a device.

    FILE defines ``settings``, a dictionary of lists or the name of a TOML file beside it, and the arguments of KERNEL,
    as for `nkitools estimate`. Variants are ranked on one chip, the one with the least estimate first. The output
    marks the first five that run with *, to be measured on a device. It says which one is chosen and by what margin,
    and how many lie within 5 % of its estimate and cannot be distinguished from it. A variant that does not run comes
    last, with the reason.
    """
    file, name = seen(kernel, needs_inputs=inputs is None)
    print_variants(file, name, inputs, chips, settings, as_json=as_json)


def print_variants(
    file: str, name: str, inputs: str | None, chips: tuple[str, ...], settings: Settings, *, as_json: bool
) -> None:
    """Print the variants of the file's ``settings``, the fastest first. UsageError if they cannot be ranked."""
    from nkitools.sweeps.tune import tune
    from nkitools.targets.imports import stand_in

    if len(chips) > 1:
        raise click.UsageError("variants are ranked on one chip: name one")
    with stand_in("always"), asked(file, name, inputs, settings) as this:
        space: Space | None = this.file.settings
        if space is None:
            raise click.UsageError(
                f"{file} says no settings: give it `settings`, {{'BLOCK': [256, 512]}} say, or a TOML file"
            )
        try:
            choices = choices_of(space)
            space = {**choices, **{each: [value] for each, value in settings.items() if each in choices}}
            found = tune(this.kernel, this.args, space=space, chip=next(iter(chips), None), **this.kwargs)
        except (OSError, ValueError) as error:
            raise click.UsageError(str(error)) from None
    if not as_json:
        say(str(found))
        return
    plain = [
        {
            "values": each.values,
            "latency_us": None if each.estimate is None else each.latency_us,
            "is_proposed": each in found.proposed,
            "is_like_the_best": each in found.alike,
            "refused": each.refused,
        }
        for each in found.variants
    ]
    say_json(plain, allow_nan=False, default=str)
