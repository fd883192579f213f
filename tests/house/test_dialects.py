"""Dialects are data: what a dialect means is a field of its semantics, and each field has one meaning that is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from functools import cache
from pathlib import Path

import pytest

from nkitools.chip.dialect_semantics import MODERN, DialectSemantics
from nkitools.dialects.legacy.semantics import LEGACY
from tests.cases import each
from tests.house.sources import nodes_under, tree_of

PACKAGE = Path(__file__).parents[2] / "nkitools"
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
BELOW = [file for file in FILES if file.partition("/")[0] not in ("dialects", "facts", "lint", "rules")]


def read_fields(tree: ast.AST) -> Iterator[str]:
    """The names that are read of something called ``dialect``."""
    for node in nodes_under(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="dialect") | ast.Attribute(attr="dialect"), attr=name):
                yield name


@cache
def fields_read() -> frozenset[str]:
    """The names that the package reads of something called ``dialect``."""
    return frozenset(name for path in FILES.values() for name in read_fields(tree_of(path)))


def compared_dialects(tree: ast.AST) -> Iterator[int]:
    """The lines that compare a dialect, or its name."""
    for node in nodes_under(tree):
        if isinstance(node, ast.Compare):
            for each in (node.left, *node.comparators):
                inner = each.value if isinstance(each, ast.Attribute) and each.attr == "name" else each
                if isinstance(inner, ast.Attribute) and inner.attr == "dialect":
                    yield node.lineno


@pytest.mark.parametrize("field", [field.name for field in fields(DialectSemantics)])
def test_a_meaning_is_read_and_differs(field: str) -> None:
    """A field that nothing reads, or that both dialects answer alike, would be none."""
    assert field in fields_read()
    assert getattr(MODERN, field) != getattr(LEGACY, field)


@each("file", BELOW)
def test_rooms_below_the_dialects_ask_for_meanings(file: str) -> None:
    """They compare no dialect with another: what is different about it is a field."""
    assert list(compared_dialects(tree_of(FILES[file]))) == []


def test_a_comparison_of_dialects_is_found() -> None:
    """The test above can fail."""
    for code in ("core.dialect is LEGACY", "launch.dialect.name == 'nki'", "x != self.dialect"):
        assert list(compared_dialects(ast.parse(code))) == [1]
    assert list(compared_dialects(ast.parse("core.dialect.spills and x == 1"))) == []


def test_the_semantics_of_a_dialect_cannot_be_changed() -> None:
    """They are shared by every launch of the dialect."""
    with pytest.raises(FrozenInstanceError):
        LEGACY.spills = False  # type: ignore[misc]
    assert LEGACY.spills
    assert (MODERN.name, LEGACY.name) == ("nki", "neuronxcc.nki")
