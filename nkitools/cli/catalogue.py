"""Rules as the commands show them: as plain data, and the names they go by."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nkitools.rules.catalogue import RULES, Rule

_SHOWN = ("id", "slug", "severity", "chips", "reason", "source", "remedy", "bad", "good", "aliases", "since")


def plain(rule: Rule) -> dict[str, Any]:
    """What a machine reads of ``rule``."""
    fields = asdict(rule)
    return {name: fields[name] for name in _SHOWN}


def family(rule: Rule) -> str:
    """``NK1`` of ``NK103``."""
    return rule.id[:-2]


def families() -> list[str]:
    """The families in the order of the catalogue."""
    return list(dict.fromkeys(family(rule) for rule in RULES.values()))


def similar(name: str, limit: int = 3) -> list[Rule]:
    """The rules with the names (id, slug or alias) closest to ``name``."""
    from difflib import get_close_matches

    owners = {known.lower(): rule for rule in RULES.values() for known in (rule.id, rule.slug, *rule.aliases)}
    close = get_close_matches(name.strip().lower(), owners, n=2 * limit, cutoff=0.5)
    return list({owners[known].id: owners[known] for known in close}.values())[:limit]
