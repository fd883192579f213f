"""The names of NKI as editors and agents show them: call form, meaning, rules, versions, source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from nkitools.dialects.public import whole
from nkitools.facts import versions
from nkitools.rules.catalogue import RULES
from nkitools.suggestions.lint_interface import Dialects, module_of

_RULE = re.compile(r"\b(?:NK|CO|PL)\d{3}\b")
_RANGE = re.compile(r"\b(NK)(\d{3}) to NK(\d{3})\b")
MODULES = ("nki.isa", "nki.language", "nki.collectives", "neuronxcc.nki.isa", "neuronxcc.nki.language")


@dataclass(frozen=True)
class Card:
    """One name of NKI. ``says``: shapes, limits and dtypes. ``rules``: those that its calls may break."""

    name: str
    call: str
    says: str
    source: str
    rules: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The first sentence of ``says``."""
        text = re.sub(r"\s+", " ", self.says)
        return re.split(r"(?<=[.:;])\s", text)[0].rstrip(":;")


@lru_cache(maxsize=1024)
def card(name: str) -> Card | None:
    """Return the card of a dotted name, such as ``nki.isa.nc_matmul``; None for a name that NKI does not have."""
    module, _, word = name.rpartition(".")
    home = module_of(module) if module else None
    if home is None or word not in home.__all__:
        return None
    space = vars(home)
    found: Any = whole(space, word)
    doc = inspect.getdoc(found) or ""
    if not callable(found) or doc == inspect.getdoc(type(found)):
        doc = ""
    said, _, errors = doc.partition("Errors:")
    errors, _, source = errors.partition("Source:")
    if not errors:
        said, _, source = said.partition("Source:")
    wide = _RANGE.sub(lambda each: " ".join(f"NK{one}" for one in range(int(each[2]), int(each[3]) + 1)), errors)
    rules = tuple(each for each in dict.fromkeys(_RULE.findall(wide)) if each in RULES)
    call = Dialects().form(name).removeprefix("The call form is ").removesuffix(".")
    return Card(
        name, call or _short(name), said.replace("``", "`").strip(), source.strip(), rules, tuple(_versions(name))
    )


def _short(name: str) -> str:
    return name.replace("neuronxcc.", "").replace("nki.isa.", "nisa.").replace("nki.language.", "nl.")


def _versions(name: str) -> Iterator[str]:
    module, _, word = name.rpartition(".")
    for row in versions.rows():
        if row.module == module and row.name.partition("(")[0] == word:
            when = [f"since NKI {row.since}"] * bool(row.since) + [f"until NKI {row.until}"] * bool(row.until)
            if when:
                yield f"`{row.shown}`: {', '.join(when)}. {row.instead}".rstrip()


def as_markdown(found: Card) -> str:
    """Return a card as an editor shows it."""
    lines = ["```python", found.call, "```", "", found.says, ""]
    lines += [f"- {each}" for each in found.versions]
    if found.rules:
        lines += ["", "Rules: " + ", ".join(f"{each} {RULES[each].slug}" for each in found.rules) + "."]
    if found.source:
        lines += ["", f"Source: {found.source}"]
    return "\n".join(lines)


def rule_as_markdown(rule_id: str) -> str:
    """Return a rule as an editor shows it: reason, source, remedy, and its first examples."""
    rule = RULES[rule_id]
    lines = [f"**{rule.id} {rule.slug}** ({rule.severity})", "", rule.reason, "", f"Source: {rule.source}", ""]
    lines += [f"Remedy: {rule.remedy}", "", f"Chips: {' '.join(rule.chips)}"]
    lines += ["", f"Facts: {' '.join(rule.facts)}"] if rule.facts else []
    for heading, code in (("Bad", rule.examples[0].bad), ("Good", rule.examples[0].good)) if rule.examples else ():
        language = "cpp" if "torch::" in code else "python"
        lines += ["", f"{heading}:", "", f"```{language}", code.strip("\n"), "```"]
    return "\n".join(lines)


@cache
def names(module: str) -> tuple[str, ...]:
    """Return the dotted names of a module whose cards say something."""
    home = module_of(module)
    every = (f"{module}.{word}" for word in sorted(home.__all__)) if home is not None else ()
    return tuple(name for name in every if (found := card(name)) is not None and found.says)
