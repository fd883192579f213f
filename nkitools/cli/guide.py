"""``nkitools guide``: a dialect on two pages, for an agent's context."""

from __future__ import annotations

import click

from nkitools.facts import options


@click.command("guide", short_help="Print a compact reference of NKI.")
@click.option("--chip", type=click.Choice(options.OPTIONS["chip"].choices), help=options.OPTIONS["chip"].help)
@click.option(
    "--nki-version", type=click.Choice(options.OPTIONS["nki_version"].choices), help=options.OPTIONS["nki_version"].help
)
@click.option("--legacy", is_flag=True, help="The dialect of neuronxcc.nki.")
def print_guide(chip: str | None, nki_version: str | None, legacy: bool) -> None:
    """Print a compact reference of NKI: rules of thumb, the chip's limits, and the call form of each function.

    Made from the instructions that the simulator runs, to be pasted into the context of a coding agent.
    """
    from nkitools.chip.chosen_chip import resolve_chip
    from nkitools.serve.guide import guide

    with options.override(**({"nki_version": nki_version} if nki_version else {})):
        click.echo(guide(resolve_chip(chip), legacy=legacy), nl=False)
