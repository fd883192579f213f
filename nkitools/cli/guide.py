"""``nkitools guide``: a dialect on two pages, for an agent's context."""

from __future__ import annotations

import click

from nkitools.cli.shared_options import chip_option, version_option


@click.command("guide", short_help="Print a compact reference of NKI.")
@chip_option
@version_option
@click.option("--legacy", is_flag=True, help="The dialect of neuronxcc.nki, which has no --nki-version.")
def print_guide(legacy: bool) -> None:
    """Print a compact reference of NKI: rules of thumb, the chip's limits, and the call form of each function.

    It is Markdown, made from the instructions that the simulator runs, for the context of a coding agent.
    """
    if legacy and click.get_current_context().params["nki_version"] is not None:
        raise click.UsageError("--legacy is the dialect of SDK 2.26; leave --nki-version out")
    from nkitools.chip.chosen_chip import resolve_chip
    from nkitools.serve.guide import guide

    click.echo(guide(resolve_chip(), legacy=legacy), nl=False)
