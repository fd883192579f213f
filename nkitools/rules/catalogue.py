"""The rule catalogue: ids and texts, pure data that every room may name."""

from __future__ import annotations

from dataclasses import dataclass

ALL_CHIPS = ("trn1", "inf2", "trn2", "trn3")


@dataclass(frozen=True)
class Rule:
    """One rule: what it is called, whom it holds for, why, and what to do about it.

    ``bad`` and ``good`` are complete examples: each defines ``kernel`` and ``inputs`` and is run by the tests. The line
    of ``bad`` that ends in ``# <id>`` is the line that must be reported. ``builtin`` names the built-in exception that
    AWS documents for the case, if any. ``aliases`` are the codes of the legacy dialect's error page.
    """

    id: str
    slug: str
    severity: str
    reason: str
    source: str
    remedy: str
    bad: str = ""
    good: str = ""
    chips: tuple[str, ...] = ALL_CHIPS
    aliases: tuple[str, ...] = ()
    builtin: str = ""
    since: str = "0.1"


def _gather() -> dict[str, Rule]:
    # The family modules import Rule from here, so they can only be read once it exists.
    from nkitools.rules import data, dtype, language, memory, order, shape

    rules = [rule for family in (shape, memory, dtype, data, order, language) for rule in family.RULES]
    return {rule.id: rule for rule in sorted(rules, key=lambda rule: rule.id)}


RULES: dict[str, Rule] = _gather()


def find_rule(name: str) -> Rule | None:
    """The rule of that id, slug or legacy error code (in any case), or None."""
    wanted = name.strip().lower()
    for rule in RULES.values():
        if wanted in (rule.id.lower(), rule.slug, *rule.aliases):
            return rule
    return None
