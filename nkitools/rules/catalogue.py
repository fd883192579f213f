"""The rule catalogue: ids and texts, pure data that every room may name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from nkitools.chip.generations import CHIPS

_UNEXPECTED = re.compile("unexpected keyword argument '(\\w+)'")
_KINDS = ("NK", "PL", "CO")  # NKI, Pallas, custom operators
TPU_CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")  # of the Pallas rules


_EXAMPLES = os.path.join(os.path.dirname(__file__), "examples")


class Example(NamedTuple):
    """A kernel that breaks a rule and one that keeps to it, as source texts."""

    bad: str
    good: str


@dataclass(frozen=True)
class Rule:
    """One rule: its names, the chips that it holds for, the reason and the remedy.

    The examples are complete files in ``rules/examples/<id>/``: ``bad`` and ``good``, and ``bad_edge`` and
    ``good_edge`` near the edge of the rule. Each defines ``kernel`` and ``inputs`` (or shows in its first line how the
    C++ operator is called) and is run by the tests. The line of a bad example that ends in a comment with the rule's id
    is the line that must be reported.
    """

    id: str
    slug: str
    severity: str
    reason: str
    source: str
    remedy: str
    chips: tuple[str, ...] = CHIPS
    aliases: tuple[str, ...] = ()  # the codes of the legacy dialect's error page
    builtin: str = ""  # the built-in exception that AWS documents for the case
    lint_only: bool = False
    since: str = "0.1"
    replacements: tuple[tuple[str, str], ...] = ()  # each removed name, and what took its place

    @property
    def bad(self) -> str:
        """Return the plainest example that breaks the rule."""
        return _example(self.id, "bad")

    @property
    def good(self) -> str:
        """Return the plainest example, mended."""
        return _example(self.id, "good")

    @property
    def examples(self) -> tuple[Example, ...]:
        """Return all pairs of a bad and a good example, the plainest first."""
        plain = Example(self.bad, self.good)
        edge = Example(_example(self.id, "bad_edge"), _example(self.id, "good_edge"))
        return (plain, edge) if edge.bad else (plain,)


@cache
def _example(rule: str, name: str) -> str:
    """Return the text of one example file, empty where the rule has none of that name."""
    ending = "cpp" if rule.startswith("CO") else "py"
    path = os.path.join(_EXAMPLES, rule, f"{name}.{ending}")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _gather() -> dict[str, Rule]:
    # The family modules import Rule from here, so they can only be read once it exists.
    from nkitools.rules import customop, data, dtype, language, memory, order, pallas, shape, speed

    families = (shape, memory, dtype, data, order, language, speed, pallas, customop)
    rules = [rule for family in families for rule in family.RULES]
    return {rule.id: rule for rule in sorted(rules, key=lambda rule: (_KINDS.index(rule.id[:2]), rule.id))}


RULES: dict[str, Rule] = _gather()


def removed_argument(error: TypeError) -> tuple[str, str]:
    """Of a call with an unknown keyword argument: its name, and what took its place, if it is one that is gone."""
    found = _UNEXPECTED.search(str(error))
    name = found[1] if found is not None else ""
    return name, dict(RULES["NK608"].replacements).get(f"{name}=", "")


def removed_memory(name: str) -> tuple[str, str]:
    """Return the message and the remedy (NK608) for a memory named by text."""
    return "names of memories as texts were removed in NKI 0.3", f"Write nl.{name}."


def similar(name: str, limit: int = 3) -> list[Rule]:
    """Return the rules with the names (id, slug or alias) closest to ``name``."""
    from difflib import get_close_matches

    owners = {known.lower(): rule for rule in RULES.values() for known in (rule.id, rule.slug, *rule.aliases)}
    close = get_close_matches(name.strip().lower(), owners, n=2 * limit, cutoff=0.5)
    return list({owners[known].id: owners[known] for known in close}.values())[:limit]


def rule_named(name: str) -> Rule:
    """Return the rule of that id, slug or legacy error code; ValueError says which have a name like it."""
    rule = find_rule(name) if isinstance(name, str) else None
    if rule is None:
        near = [f"{each.id} {each.slug}" for each in similar(str(name))]
        suggestion = f"Did you mean {', '.join(near)}?" if near else "`nkitools rules` lists them all."
        raise ValueError(f"no rule is called {name!r}. {suggestion}")
    return rule


def find_rule(name: str) -> Rule | None:
    """Return the rule of that id, slug or legacy error code (in any case), or None; of rules with one slug that of
    NKI.
    """
    wanted = name.strip().lower()
    found = [rule for rule in RULES.values() if wanted in (rule.id.lower(), rule.slug, *rule.aliases)]
    return next((rule for rule in found if rule.id.startswith("NK")), found[0] if found else None)
