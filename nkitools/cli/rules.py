"""``nkitools rules``: the catalogue."""

from __future__ import annotations

from textwrap import fill

import click

from nkitools.cli.catalogue import families, family, plain
from nkitools.cli.shared_options import json_option
from nkitools.cli.terminal import SEVERITY_STYLES, console, say_json
from nkitools.rules.catalogue import RULES, Rule

_INDENT = " " * 7  # as wide as an id and what follows it


@click.command("rules", short_help="List the rules: id, name, severity and reason.")
@click.option("--family", "wanted", metavar="NK1", help="Only the rules of one family.")
@json_option("Print one JSON object for each rule, in a list.")
def list_rules(wanted: str | None, as_json: bool) -> None:
    """List the rules: id, name, severity and reason."""
    chosen = [rule for rule in RULES.values() if wanted is None or family(rule) == wanted.upper()]
    if not chosen:
        raise click.BadParameter(f"no family {wanted}; there are {', '.join(families())}.", param_hint="'--family'")
    if as_json:
        say_json([plain(rule) for rule in chosen])
    else:
        _show(chosen)


def _show(chosen: list[Rule]) -> None:
    from rich.text import Text

    terminal = console()
    width = max(len(rule.slug) for rule in chosen)
    for rule in chosen:
        severity = (f"{rule.severity:7}", SEVERITY_STYLES[rule.severity])
        head = Text.assemble((rule.id, "bold"), f"  {rule.slug:{width}}  ", severity)
        if terminal.is_terminal:
            terminal.print(head)
            terminal.print(fill(rule.reason, terminal.width, initial_indent=_INDENT, subsequent_indent=_INDENT))
        else:  # a line for each rule, for grep and its kin
            terminal.print(head.append(f"  {rule.reason}"))
