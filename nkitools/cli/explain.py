"""``nkitools explain``: one rule, with its reason, remedy and examples."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import click

from nkitools.cli.catalogue import completed_rules, plain
from nkitools.cli.terminal import SEVERITY_STYLES, console
from nkitools.rules.catalogue import Rule, rule_named

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 100


@click.command("explain")
@click.argument("name", metavar="ID", shell_complete=completed_rules)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--all", "every", is_flag=True, help="Show all examples, also those near the edge of the rule.")
def explain_rule(name: str, form: str, every: bool) -> None:
    """Explain the rule ID, given by id (NK103), name (partition-limit) or legacy error code (err_...)."""
    try:
        rule = rule_named(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if form == "json":
        click.echo(json.dumps(plain(rule), indent=2))
    else:
        _show(rule, every)


def _show(rule: Rule, every: bool) -> None:
    from rich.text import Text

    terminal = console()
    severity = (rule.severity, SEVERITY_STYLES[rule.severity])
    terminal.print(Text.assemble((rule.id, "bold"), f" {rule.slug} (", severity, ")"))
    for heading, text in (
        ("Reason", rule.reason),
        ("Source", rule.source),
        ("Chips", " ".join(rule.chips)),
        ("Remedy", rule.remedy),
        ("Reported by", rule.reporter),
        ("Legacy codes", " ".join(rule.aliases)),
    ):
        if text:
            terminal.print(f"\n{heading}", style="bold")
            # Words of code stay whole: they are there to be copied.
            terminal.print(textwrap.indent(textwrap.fill(text, _WIDTH, break_on_hyphens=False), "  "))
    if rule.replacements:
        terminal.print("\nReplacements", style="bold")
        for gone, instead in rule.replacements:
            terminal.print(textwrap.indent(textwrap.fill(f"{gone}: {instead}", _WIDTH, subsequent_indent="  "), "  "))
    for example in rule.examples if every else rule.examples[:1]:
        _show_example(terminal, "Bad", example.bad)
        _show_example(terminal, "Good", example.good)
    if not every and len(rule.examples) > 1:
        terminal.print(f"\n`nkitools explain {rule.id} --all` shows an example near the edge, too.")


def _show_example(terminal: Console, heading: str, code: str) -> None:
    if not code:
        return
    terminal.print(f"\n{heading}", style="bold")
    indented = textwrap.indent(textwrap.dedent(code).strip("\n"), "  ")
    if terminal.is_terminal:
        from rich.syntax import Syntax

        language = "cpp" if "torch::" in code else "python"
        terminal.print(Syntax(indented, language, theme="ansi_dark", background_color="default"))
    else:
        terminal.print(indented)
