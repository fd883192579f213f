"""A rule: its names, the chips that it holds for, its texts and its examples, all in ``rules/examples/<id>/``."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from nkitools.facts import versions
from nkitools.facts.generations import CHIPS, chips_with, incomplete_chips
from nkitools.facts.light_classes import NamedTuple, dataclass

TPU_CHIPS = ("v4", "v5e", "v5p", "v6e", "tpu7x")  # of the Pallas rules
EXAMPLES = os.path.join(os.path.dirname(__file__), "examples")


class Example(NamedTuple):
    """A kernel that breaks a rule and one that keeps to it, as source texts."""

    bad: str
    good: str


@dataclass(frozen=True)
class Rule:
    """One rule: its names, the chips that it holds for, the reason and the remedy.

    The fields stand in ``rules/examples/<id>/rule.toml``. The examples beside it are complete files: ``bad`` and
    ``good``, and ``bad_edge`` and ``good_edge`` near the edge of the rule; further pairs share an ending. Each defines
    ``kernel`` and ``inputs`` (or shows in its first line how the C++ operator is called) and is run by the tests. The
    line of a bad example that ends in a comment with the rule's id is the line that must be reported.
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
    estimate_only: bool = False  # given with an estimate, with its price, and not by a plain run
    since: str = "0.1"
    nki_version: str = ""  # the version of NKI whose examples break the rule, where the newest one allows them
    replacements: tuple[tuple[str, str], ...] = ()  # each removed name, and what took its place
    facts: tuple[str, ...] = ()  # that its findings may have beside the common ones: `nkitools.rules.facts`

    @property
    def reporter(self) -> str:
        """Return the command that reports the rule, if runs do not; else ''."""
        if self.lint_only:
            return "nkitools lint, and not by runs"
        return "estimates, with its price, and not by runs" if self.estimate_only else ""

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
        """Return all pairs of a bad and a good example: the plain pair, the one near the edge, the others by name."""
        stems = (os.path.splitext(each)[0] for each in os.listdir(os.path.join(EXAMPLES, self.id)))
        found = [stem.removeprefix("bad") for stem in stems if stem.startswith("bad")]
        kinds = sorted(found, key=lambda kind: (kind not in ("", "_edge"), kind))
        return tuple(Example(_example(self.id, f"bad{kind}"), _example(self.id, f"good{kind}")) for kind in kinds)


@cache
def _example(rule: str, name: str) -> str:
    """Return the text of one example file; '' if the rule has none of that name."""
    ending = "cpp" if rule.startswith("CO") else "py"
    path = os.path.join(EXAMPLES, rule, f"{name}.{ending}")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


@cache
def read_rule(identifier: str) -> Rule:
    """Return the rule with this id, out of its file. KeyError for an unknown id.

    ``chips`` in the file is a list, ``"tpu"``, ``"incomplete"`` (the chips that lack an ability of the newest), or all
    where it is not given; ``chips_with`` names an ability of the chips. ``forms`` are removed ways of writing, and what
    took their place; removed names come from the table of versions.
    """
    import tomllib

    path = os.path.join(EXAMPLES, identifier, "rule.toml")
    if not os.path.exists(path):
        raise KeyError(identifier)
    with open(path, "rb") as file:
        fields: dict[str, Any] = tomllib.load(file)
    chips = fields.pop("chips", CHIPS)
    named = {"tpu": TPU_CHIPS, "incomplete": incomplete_chips()}
    fields["chips"] = named[chips] if isinstance(chips, str) else tuple(chips)
    if ability := fields.pop("chips_with", ""):
        fields["chips"] = chips_with(ability)
    if forms := fields.pop("forms", {}):
        fields["replacements"] = (*versions.removed(), *forms.items())
    newest, release = versions.versions_of()[-1], versions.release_of(versions.MODERN)
    known = {"{modern}": newest, "{release}": release, "{legacy}": versions.release_of(versions.LEGACY)}
    for placeholder, text in known.items():
        fields["source"] = fields["source"].replace(placeholder, text)
        fields["reason"] = fields["reason"].replace(placeholder, text)
    fields["aliases"], fields["facts"] = tuple(fields.get("aliases", ())), tuple(fields.get("facts", ()))
    return Rule(id=identifier, **fields)
