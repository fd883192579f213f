"""The results of a kernel: NK407, NK408."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.source import Edit
from nkitools.lint.scope import Function, own_nodes
from nkitools.suggestions.site import Site, Suggestion


def returned(site: Site) -> Iterator[Suggestion]:
    """NK407, NK408: return the tensor, or the parameter beside what is returned."""
    function, name = site.scope.node, site.text_fact("tensor")
    if not name.isidentifier() or not isinstance(function, Function):
        return
    leaving = [each for each in own_nodes(function.body) if isinstance(each, ast.Return)]
    if any(each.value is not None and name in _names(each.value) for each in leaving):
        return  # a helper that returns it: the line to change is elsewhere
    edits = tuple(_beside(each, name) for each in leaving)
    if not leaving:
        edits = (_at_the_end(site, function, name),)
    yield Suggestion(f"Return `{name}`", edits)


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _beside(node: ast.Return, name: str) -> Edit:
    end = node.end_lineno or node.lineno, node.end_col_offset or 0
    if node.value is None:
        return Edit(*end, *end, f" {name}")
    return Edit(*end, *end, f", {name}")


def _at_the_end(site: Site, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Edit:
    last = function.body[-1]
    edit = site.behind(last, f"return {name}")
    inner = site.indent(function.body[0])
    return edit._replace(text=f"\n{inner}return {name}")
