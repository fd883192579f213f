"""The cases: a file for each, and the tables beside them."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SINGLE = ("modern", "legacy", "pallas")  # one mistake each
BEYOND = "beyond"  # no single edit mends them
INNOCENT = "innocent"  # right kernels: the reference or the tolerance is wrong
FAMILIES = (*SINGLE, BEYOND, INNOCENT)

Settings = dict[str, Any]  # parameters of a file's `inputs`, by name


@dataclass(frozen=True)
class Mistake:
    """A text of a file from a line on, and the right text in its place; an empty one stands before that line."""

    line: int  # from 1
    wrong: str
    right: str

    @property
    def lines(self) -> range:
        """The lines of the wrong text; of an empty one the line before it and the one after it."""
        if not self.wrong:
            return range(self.line - 1, self.line + 1)
        return range(self.line, self.line + self.wrong.count("\n") + 1)


@dataclass(frozen=True)
class Case:
    """A kernel, what is wrong with it, and the arguments on which an edit of it is judged."""

    family: str
    name: str
    kind: str  # of mistake, in words
    mistakes: tuple[Mistake, ...]  # none where another algorithm is wanted, and in a right kernel
    source: str  # address of the public mistake; "" for one of our own
    expected: str  # of a right kernel: what to doubt; "elementary": some edit fits the wrong reference
    of: str  # family/name of the case whose right kernel this one was made of; "" for a kernel of its own
    unseen: tuple[Settings, ...]  # beyond `space` of the file: other values, other shapes

    @property
    def path(self) -> Path:
        """The file with ``kernel``, ``reference``, ``inputs``, ``space`` and ``tolerance``."""
        return HERE / "kernels" / self.family / f"{self.name}.py"

    @property
    def text(self) -> str:
        """The text of the file, as a search for the mistake meets it."""
        return self.path.read_text(encoding="utf-8")

    @property
    def right_text(self) -> str:
        """The text without the mistakes."""
        return mended(self.text, self.mistakes)

    @property
    def is_pallas(self) -> bool:
        """Return whether the kernel is one for TPUs."""
        return "pallas" in (self.family, self.of.partition("/")[0])

    def constant(self, name: str) -> Any:
        """Return a constant at the top of the file: ``space`` or ``tolerance``."""
        for each in ast.parse(self.text).body:
            if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id == name:
                return ast.literal_eval(each.value)
        raise KeyError(name)

    def settings(self, place: int = 0) -> Settings:
        """Return a case of ``space``: the one that the file runs first, or with the second value of each name."""
        return {name: values[place] for name, values in self.constant("space").items()}


@cache
def cases() -> tuple[Case, ...]:
    """All cases, family by family."""
    found: dict[str, Case] = {}
    for family in FAMILIES:
        table = tomllib.loads((HERE / "tables" / f"{family}.toml").read_text(encoding="utf-8"))
        for name, row in table.items():
            of = row.get("of", "")
            unseen = found[of].unseen if of else tuple(row["unseen"])
            source, expected = row.get("source", ""), row.get("expected", "")
            found[f"{family}/{name}"] = Case(family, name, row["kind"], _mistakes(row), source, expected, of, unseen)
    return tuple(found.values())


def mended(text: str, mistakes: tuple[Mistake, ...]) -> str:
    """Return a text with the right text in place of mistakes. ValueError where the text has not the wrong one there."""
    for each in sorted(mistakes, key=lambda mistake: -mistake.line):
        lines = text.splitlines(keepends=True)
        before, after = "".join(lines[: each.line - 1]), "".join(lines[each.line - 1 :])
        if not each.wrong:
            text = f"{before}{each.right}\n{after}"
            continue
        start = after.find(each.wrong)
        if start < 0 or "\n" in after[:start]:
            raise ValueError(f"line {each.line} has no {each.wrong!r}")
        text = before + after[:start] + each.right + after[start + len(each.wrong) :]
    return text


def _mistakes(row: dict[str, Any]) -> tuple[Mistake, ...]:
    rows = row.get("mistakes", [row] if "line" in row else [])
    return tuple(Mistake(each["line"], each["wrong"].rstrip("\n"), each["right"].rstrip("\n")) for each in rows)
