"""What a rule is: its names, the chips that it holds for, its texts and its examples."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from nkitools.chip.generations import CHIPS

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
