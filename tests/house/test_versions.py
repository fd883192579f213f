"""NKI versions are data: what a version means is a row of the table and a field of `LanguageVersion`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkitools.facts import versions
from tests.cases import each
from tests.house.sources import nodes_of

PACKAGE = Path(__file__).parents[2] / "nkitools"
FILES = {
    str(path.relative_to(PACKAGE)): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "versions.py" and path.relative_to(PACKAGE).parts[:2] != ("rules", "examples")
}
NUMBERS = {*versions.versions_of(versions.MODERN), *versions.versions_of(versions.LEGACY)}


def compared(nodes: tuple[ast.AST, ...]) -> Iterator[int]:
    """The lines that compare an NKI version, or that write one down."""
    for node in nodes:
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(is_version, (left, *others))):
                yield node.lineno
            case ast.Constant(value=str(text)) if text in NUMBERS:
                yield node.lineno


def is_version(node: ast.AST) -> bool:
    """``language.name``, ``core.language.name``."""
    match node:
        case ast.Attribute(value=ast.Name(id="language") | ast.Attribute(attr="language"), attr="name" | "shown"):
            return True
    return False


@each("file", FILES)
def test_no_version_is_compared(file: str) -> None:
    """Code asks for a meaning: a field of the version's record."""
    assert list(compared(nodes_of(FILES[file]))) == []


@pytest.mark.parametrize("code", ["core.language.name == '1'", "'1' < language.name", "new = x in ('0.6', other)"])
def test_a_comparison_is_found(code: str) -> None:
    """The test above can fail."""
    assert list(compared(tuple(ast.walk(ast.parse(code))))) == [1]


def test_each_meaning_is_a_row_of_the_table() -> None:
    """A field without a row would be False under every version, and a row without a field nothing."""
    rows = [row for row in versions.rows() if row.name.startswith("%")]
    assert {row.name for row in rows} == {f"%{name}" for name in versions.MEANINGS}
    assert all(row.differs and row.instead for row in rows)


# ``traced`` decides rows of the table first of all: those of the tracer.
@pytest.mark.parametrize("meaning", [each for each in versions.MEANINGS if each != "traced"])
def test_each_meaning_is_read(meaning: str) -> None:
    """A field that nothing reads would be none."""
    reads = (
        node
        for path in FILES.values()
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr == meaning
    )
    assert any(reads)
