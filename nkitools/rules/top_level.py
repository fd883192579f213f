"""The names of a source file's top level, without running the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def bound_by(statement: ast.AST) -> Iterator[str]:
    """Yield the names that a statement of the top level binds; ``*`` for all names of another module."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for each in statement.names:
            yield each.asname or each.name.partition(".")[0]
    elif isinstance(statement, ast.Name):
        if isinstance(statement.ctx, ast.Store):
            yield statement.id
    else:
        for child in ast.iter_child_nodes(statement):
            yield from bound_by(child)


def bound_names(source: str) -> dict[str, ast.stmt] | None:
    """Return the names that a file binds at its top level, each with its statement.

    None if the text of the file does not show all of them.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    names = {name: statement for statement in tree.body for name in bound_by(statement)}
    return None if "*" in names or "globals()" in source else names
