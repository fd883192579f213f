"""The rule catalogue: ids and texts, pure data that every room may name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from nkitools.facts import versions
from nkitools.rules.rule import EXAMPLES, read_rule
from nkitools.rules.rule import TPU_CHIPS as TPU_CHIPS
from nkitools.rules.rule import Rule as Rule

_KINDS = ("NK", "PL", "CO")  # NKI, Pallas, custom operators


class _Rules(Mapping[str, Rule]):
    """All rules by id, in the order of the catalogue; each is read from its file when it is first asked for."""

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        there = (name for name in os.listdir(EXAMPLES) if name.startswith(_KINDS))
        return tuple(sorted(there, key=lambda name: (_KINDS.index(name[:2]), name)))

    def __getitem__(self, identifier: str) -> Rule:
        return read_rule(identifier)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


RULES: Mapping[str, Rule] = _Rules()


def removed_argument(error: TypeError) -> tuple[str, str]:
    """Of a call with an unknown keyword argument: its name, and what took its place, if it is one that is gone."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    name = found[1] if found is not None else ""
    return name, dict(RULES["NK608"].replacements).get(f"{name}=", "")


def removed_memory(name: str) -> tuple[str, str]:
    """Return the message and the remedy (NK608) for a memory named by text."""
    until = versions.by_full_name()["nki.buffer='sbuf'"].until
    return f"names of memories as texts were removed in NKI {until}", f"Write nl.{name}."


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
    """Return the rule of that id, slug or legacy error code (in any case), or None; of equal slugs that of NKI."""
    wanted = name.strip().lower()
    found = [rule for rule in RULES.values() if wanted in (rule.id.lower(), rule.slug, *rule.aliases)]
    return next((rule for rule in found if rule.id.startswith("NK")), found[0] if found else None)
