"""The package's sources as trees, each parsed and walked once for all tests of the house."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree_in(source: str) -> ast.Module:
    """Return the syntax tree of a source, which no test changes."""
    return ast.parse(source)


@cache
def nodes_under(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return a node and all nodes below it, in the order of `ast.walk`, which takes longer."""
    nodes = [tree]
    for node in nodes:  # which grows meanwhile
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif type(value) is list:
                nodes += [each for each in value if isinstance(each, ast.AST)]
    return tuple(nodes)


def nodes_in(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source's tree."""
    return nodes_under(tree_in(source))


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return tree_in(path.read_text(encoding="utf-8"))


def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's tree."""
    return nodes_under(tree_of(path))
