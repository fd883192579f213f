"""Docstrings, messages and documents are written in plain words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.shown_files import pages
from tests.cases import each
from tests.house.sources import nodes_under, tree_in

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"
EXAMPLES = PACKAGE / "rules" / "examples"

# Persons for code, and words in an order that English does not have. Each hides a noun that the reader needs.
FORBIDDEN = {
    "persons": r"\b(?:some|no|any)body\b|\bwho(?:so)?ever\b|\bhears?\b|\bheard\b|\bspeaks?\b|\bspoken\b",
    "telling": r"\btold\b|\btells? of\b|\blistens?\b|\bhas the last word\b",
    "inversions": r"\bof (?:which|what)\b|\bis had\b|\bare had\b|\bwhat there is to say\b",
}
WORDS = re.compile("|".join(FORBIDDEN.values()), re.IGNORECASE)

# A docstring of a function, class or module does not begin with a clause that stands for a noun.
OPENERS = re.compile(r"(?:What|Which|Whether|Where|Who|How|Why)\b")

# Sentences that stay, each with its reason: the words stand in a quotation or in a name.
STAY: frozenset[str] = frozenset()


def python_files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if EXAMPLES not in path.parents]


def documents() -> list[Path]:
    return [path for path in pages() if path.name == "README.md" or path.is_relative_to(REPOSITORY / "docs")]


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of a file."""
    for node in nodes_under(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every string of a file that holds a blank: docstrings, messages, remedies."""
    for node in nodes_under(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every comment."""
    for number, line in enumerate(source.splitlines(), start=1):
        if (found := re.search(r"(?:^|\s)#\s(.*)", line)) and line.count('"') % 2 == 0:
            yield number, found[1]


def wrong_words(text: str) -> list[str]:
    """Return the forbidden words in a text."""
    return [] if text in STAY else [found.group() for found in WORDS.finditer(text)]


@each("path", python_files())
def test_a_file_of_the_package_keeps_to_plain_words(path: Path) -> None:
    """Strings and comments have none of the forbidden words, and no docstring begins with a noun clause."""
    source = path.read_text()
    tree = tree_in(source)
    places = [(line, word) for line, text in [*texts(tree), *comments(source)] for word in wrong_words(text)]
    places += [(each.lineno, "opener") for each in docstrings(tree) if OPENERS.match(str(each.value))]
    assert places == []


@each("path", documents())
def test_a_document_keeps_to_plain_words(path: Path) -> None:
    """Tutorials, how-to guides, reference and explanation have none of the forbidden words."""
    assert [
        (number, word) for number, line in enumerate(path.read_text().splitlines(), 1) for word in wrong_words(line)
    ] == []


def test_forbidden_words_are_found() -> None:
    """Each kind of forbidden word is found wherever it stands."""
    for text in ("nobody reads it", "it is told of a race", "tensors of which one is full", "What a tensor is not."):
        tree = ast.parse(f'def f() -> int:\n    """{text}"""\n    # {text}\n    return "{text}"\n')
        assert OPENERS.match(text) or [found for _, each in texts(tree) for found in wrong_words(each)]
