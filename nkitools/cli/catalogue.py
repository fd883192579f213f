"""Rules as the commands show them: as plain data, and by families."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from nkitools.rules.catalogue import RULES, Rule

_SHOWN = (
    "id", "slug", "severity", "chips", "reason", "source", "remedy", "bad", "good", "examples", "aliases", "since",
    "replacements", "facts",
)  # fmt: skip


def plain(rule: Rule) -> dict[str, Any]:
    """Return ``rule`` for JSON."""
    examples = [example._asdict() for example in rule.examples]
    fields = {**asdict(rule), **examples[0], "examples": examples}
    return {name: fields[name] for name in _SHOWN}


def completed_rules(context: click.Context, argument: click.Parameter, text: str) -> list[str]:
    """Return the ids and names of rules that begin with a text, for the shell's completion."""
    return [name for rule in RULES.values() for name in (rule.id, rule.slug) if name.lower().startswith(text.lower())]


def family(rule: Rule) -> str:
    """``NK1`` of ``NK103``."""
    return rule.id[:-2]


def families() -> list[str]:
    """Return the families in the order of the catalogue."""
    return list(dict.fromkeys(family(rule) for rule in RULES.values()))
