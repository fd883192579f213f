"""``nkitools explain``: one rule with its reason, remedy and examples; a code of AWS's; the codes of a log."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

import click

from nkitools.cli.catalogue import completed_rules, plain
from nkitools.cli.shared_options import json_option
from nkitools.cli.terminal import SEVERITY_STYLES, console, say_json
from nkitools.rules.catalogue import Rule, rule_named

if TYPE_CHECKING:
    from rich.console import Console

    from nkitools.facts.known_faults import Fault

_WIDTH = 100


@click.command("explain", short_help="Explain a rule, a code of AWS, a known fault.")
@click.argument("name", metavar="[ID]", required=False, shell_complete=completed_rules)
@json_option("Print JSON: one object for a rule or a name, a list for codes of AWS and known faults.")
@click.option("--all", "every", is_flag=True, help="Show all examples, also those near the edge of the rule.")
def explain_rule(name: str | None, as_json: bool, every: bool) -> None:
    """Explain the rule ID, given by id (NK103), name (partition-limit) or legacy error code (err_...).

    ID may also be a code of AWS's compiler or runtime (NCC_EBVF030, NRT_EXEC_OOB, 1006, TEN404), a known fault by its
    name or public thread (jax-ml/jax#39744), or a name that NKI lacks (nisa.multiply, or the keyword scr=): the answer
    is then the call to write. Without ID, or with -, it reads a log from standard input and explains each code in it,
    the cause first.
    """
    from nkitools.facts.known_faults import codes_in, fault_named

    if name is None or name == "-":
        if name is None and sys.stdin.isatty():
            raise click.UsageError("give an ID, or a log on standard input: nkitools explain < log-neuron-cc.txt")
        found = codes_in(sys.stdin.buffer.read().decode(errors="replace"))
        if not found:
            raise click.ClickException("the log names no code of AWS's compiler or runtime that nkitools has")
        _show_faults(found, as_json=as_json)
        return
    try:
        rule = rule_named(name)
    except ValueError as error:
        fault = fault_named(name)
        if fault is not None:
            _show_faults([fault], as_json=as_json)
        elif not _show_meaning(name, as_json=as_json):
            raise click.UsageError(str(error)) from None
        return
    if as_json:
        say_json(plain(rule))
    else:
        _show(rule, every)


def _show_meaning(name: str, *, as_json: bool) -> bool:
    """Show what to write for a name that people invent (`nisa.multiply`, `scr=`); False for an unknown one."""
    from rich.text import Text

    from nkitools.suggestions.lint_interface import explained

    found = explained(name)
    if as_json and found:
        say_json({"name": name, "remedy": found})
    elif found:
        console().print(Text.assemble((name, "bold")))
        console().print(Text(_folded(found)))
    return bool(found)


def _show_faults(found: list[Fault], *, as_json: bool) -> None:
    if as_json:
        say_json([{"code": fault.name, "page": fault.address, **fault._asdict()} for fault in found])
        return
    from rich.text import Text

    terminal = console()
    for number, fault in enumerate(found):
        terminal.print(Text.assemble("\n" if number else "", (fault.title, "bold"), f" ({fault.kind})"))
        for heading, text in (
            ("Meaning", fault.meaning),
            ("Likely", fault.cause),
            ("Do", fault.write),
            ("Versions", fault.versions),
            ("Chips", " ".join(fault.chips)),
            ("Source", fault.source),
            ("Found before by", "; ".join(f"{each} {rule_named(each).slug}" for each in fault.rules)),
        ):
            if text:
                terminal.print(Text(_folded(f"{heading}: {text}")))


def _folded(text: str) -> str:
    """Return ``text`` in lines; addresses stay whole."""
    return textwrap.fill(
        text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )


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
        ("Facts", " ".join(rule.facts)),
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
