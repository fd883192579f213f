"""The tree of a text that was edited: statements that the edit did not touch are those of the earlier tree."""

from __future__ import annotations

import ast
from itertools import takewhile
from operator import eq

from nkitools.authors_code.source_text import tree_of
from nkitools.lint.module import Module
from nkitools.lint.scope import Definition


def edited_tree(earlier: Module | None, text: str) -> ast.Module:
    """Return the tree of a text. It has the statements of an ``earlier`` text of the file that stand in the same lines.

    Raises SyntaxError, ValueError, RecursionError, MemoryError.
    """
    found = None if earlier is None or "\r" in text + earlier.text else _edited(earlier, text)
    return tree_of(text) if found is None else found


def _edited(earlier: Module, text: str) -> ast.Module | None:
    """Return the tree; None if the lines that were edited are no statements by themselves."""
    old, new, body = earlier.text.split("\n"), text.split("\n"), earlier.scope.node.body
    above = _equal(old, new)
    below = _equal(old[: above - len(old) - 1 : -1], new[: above - len(new) - 1 : -1]) if len(old) == len(new) else 0
    firsts = [_first_line(each) for each in body]
    begins = [at for at, line in enumerate(firsts) if not at or line > (body[at - 1].end_lineno or 0)]
    # The last statement that begins above the edit may go on in it.
    first = max((at for at in begins if firsts[at] <= above), default=0)
    last = min((at for at in begins if firsts[at] > len(old) - below), default=len(body))
    start, end = (firsts[first] if first else 1), (firsts[last] if last < len(body) else len(new) + 1)
    try:
        edited = tree_of("\n" * (start - 1) + "\n".join(new[start - 1 : end - 1]))
    except (SyntaxError, ValueError):
        return None
    return ast.Module([*body[:first], *edited.body, *body[last:]], [])


def _equal(one: list[str], other: list[str]) -> int:
    """Return how many lines two lists begin with that are equal."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, Definition) else []
    return min([node.lineno, *(each.lineno for each in decorators)])
