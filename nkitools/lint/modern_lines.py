"""The modern line for a legacy one, if it follows from that line alone: harness, ranges, par_dim, operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.rules.finding import Finding

_HARNESS = frozenset({"baremetal", "benchmark", "profile"})
_RANGES = frozenset({"affine_range", "sequential_range", "static_range"})
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Gt: "greater", ast.GtE: "greater_equal",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip


def modern_line(found: Finding, text: str, language: str = "nl") -> str:
    """Return the line to write in place of the one that a finding names; '' if it does not follow from it alone.

    ``text``: the file, with the imports of the modern dialect. ``language``: the file's name of ``nki.language``.
    """
    lines = text.splitlines()
    tree = ast.parse(text)
    for node, new in _operators(tree, language) if found.rule == "NK601" else _calls(tree):
        is_here = node.lineno <= found.line <= (node.end_lineno or 0) and node.lineno == node.end_lineno
        if is_here and _names(node, found):
            line = lines[node.lineno - 1].encode()
            return (line[: node.col_offset] + new.encode() + line[node.end_col_offset :]).decode().strip()
    return ""


def _names(node: ast.expr, found: Finding) -> bool:
    """Return whether a finding is about a node or a name inside of it."""
    return any(
        isinstance(each, ast.expr) and each.col_offset + 1 == found.column and each.lineno == found.line
        for each in ast.walk(node)
    )


def _operators(tree: ast.AST, language: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions of Python operators with the function of nl to write for each, outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            yield node, _applied(language, node.op, node.left, node.right)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
            yield node, _applied(language, node.ops[0], node.left, node.comparators[0])


def _calls(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield decorators and calls of legacy functions with what to write for each, outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from ((each, "nki.jit") for each in node.decorator_list if _last(_called(each)) in _HARNESS)
        elif isinstance(node, ast.Call) and (new := _call(node)):
            yield node, new
        elif isinstance(node, ast.Tuple) and node.elts and _last(_called(node.elts[0])) == "par_dim":
            sizes = [ast.unparse(each) for each in (*node.elts[0].args, *node.elts[1:])]  # type: ignore[attr-defined]
            yield node, f"({', '.join(sizes)},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _call(node: ast.Call) -> str:
    """Return the modern form of a call of a legacy function; '' for other calls."""
    arguments = [ast.unparse(each) for each in (*node.args, *node.keywords)]
    name = _last(node.func)
    if name in _RANGES:
        return f"range({', '.join(arguments)})"
    if name == "simulate_kernel" and arguments:
        return f"nki.simulate({arguments[0]})({', '.join(arguments[1:])})"
    if isinstance(node.func, ast.Call) and _last(node.func.func) in _HARNESS and len(arguments) == 1:
        return arguments[0]
    return ""


def _applied(language: str, operator: ast.AST, left: ast.expr, right: ast.expr) -> str:
    return f"{language}.{_OPERATORS[type(operator)]}({ast.unparse(left)}, {ast.unparse(right)})"


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name; '' for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
