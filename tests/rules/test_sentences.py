"""No remedy is longer than two sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nkitools
from nkitools.rules.catalogue import RULES

PACKAGE = Path(nkitools.__file__).parent
END = re.compile(r"[.?!](?=\s+[A-Z`]|\s*$)")


def sentences(text: str) -> int:
    """Sentences of a text; what stands in backticks is code."""
    return len(END.findall(re.sub(r"`[^`]*`", "`x`", text).strip()))


def text_of(node: ast.AST | None) -> str:
    """A text that is written as one, with ``x`` for what is filled in; '' of anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
    return ""


def remedies(tree: ast.AST) -> Iterator[str]:
    """The texts that a file passes, assigns or returns as a remedy."""
    for node in ast.walk(tree):
        names = [each.id for each in node.targets if isinstance(each, ast.Name)] if isinstance(node, ast.Assign) else []
        names += [node.arg or ""] if isinstance(node, ast.keyword) else []
        if isinstance(node, (ast.keyword, ast.Assign)) and any("remedy" in each.lower() for each in names):
            yield text_of(node.value)
        elif isinstance(node, ast.FunctionDef) and "remedy" in node.name:
            yield from (text_of(each.value) for each in ast.walk(node) if isinstance(each, ast.Return))


def test_sentences_are_counted() -> None:
    """Dots in code, numbers and names end none."""
    assert sentences("Call nl.add(x, y) with 0.5. Look at `a. B` too.") == 2
    assert sentences("One. Two? Three!") == 3


def test_the_rules_have_two_at_most() -> None:
    """One says what to do, the other what else."""
    assert {rule.id: sentences(rule.remedy) for rule in RULES.values() if not 1 <= sentences(rule.remedy) <= 2} == {}


def test_the_package_has_two_at_most() -> None:
    """Wherever a remedy is written down, with what is filled in."""
    files = [text for path in PACKAGE.rglob("*.py") if "remedy" in (text := path.read_text())]
    found = [text for file in files for text in remedies(ast.parse(file))]
    assert len([each for each in found if each]) > 250
    assert [each for each in found if sentences(each) > 2] == []
