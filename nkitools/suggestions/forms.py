"""The form of calls, indices, masks and sums: NK601, NK603, NK604, NK609, NK608, NK618, NK620."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import get_close_matches

from nkitools.edits.source import Edit, keyword, replaced
from nkitools.lint.rewriting import edits, line_after
from nkitools.suggestions.site import Site, Suggestion, in_brackets

_FUNCTIONS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}  # fmt: skip
# NumPy's names of functions that nki.language has under the same or another one.
_NUMPY = {
    "abs": "abs", "cos": "cos", "exp": "exp", "log": "log", "maximum": "maximum", "minimum": "minimum", "sin": "sin",
    "sqrt": "sqrt", "square": "square", "tanh": "tanh", "sum": "sum", "max": "max", "mean": "mean", "add": "add",
    "multiply": "multiply", "subtract": "subtract", "where": "where", "sign": "sign",
}  # fmt: skip


def renamed(site: Site) -> Iterator[Suggestion]:
    """NK608, NK618: the newer name or form, where the new text follows from the old one."""
    found = list(edits(site.module))
    here = [each for each in found if each.line == site.finding.line]
    if not here:
        return
    pairs = [found[found.index(each) + 1] for each in here if each.after]
    line = line_after(site.module.text, here, site.finding.line)
    yield Suggestion(f"Write `{line}`", tuple(dict.fromkeys([*here, *pairs])))


def functions_for_operators(site: Site) -> Iterator[Suggestion]:
    """NK601: nl.add and its kin in the place of Python's operators, nl's functions in the place of NumPy's."""
    if not site.language or not site.blocks:
        return
    shown = site.text_fact("expression")
    nodes = [each for each in site.inside([site.blocks[-1]]) if isinstance(each, ast.BinOp | ast.Call | ast.AugAssign)]
    for node in nodes:
        placed = site.module.column(node) == site.finding.column and node.lineno == site.finding.line
        if not placed and not (shown and isinstance(node, ast.expr) and site.text(node) == shown):
            continue
        text = _as_function(site, node)
        if text and isinstance(node, ast.expr):
            yield Suggestion(f"Write `{text}`", (replaced(node, text),))
            return


def _as_function(site: Site, node: ast.AST) -> str:
    """Return sums of tiles as calls, operators in operands too; '' for what has no function."""
    if isinstance(node, ast.BinOp):
        left, right = (_as_function(site, each) or site.text(each) for each in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            return f"{site.language}.multiply({left}, {site.language}.reciprocal({right}))"
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return f"{site.language}.square({left})"
        name = _FUNCTIONS.get(type(node.op))
        return f"{site.language}.{name}({left}, {right})" if name else ""
    if isinstance(node, ast.Call) and site.scope.qualified(node.func).startswith("numpy."):
        name = _NUMPY.get(site.scope.qualified(node.func).removeprefix("numpy."))
        arguments = [_as_function(site, each) or site.text(each) for each in node.args]
        arguments += [f"{each.arg}={site.text(each.value)}" for each in node.keywords]
        return f"{site.language}.{name}({', '.join(arguments)})" if name else ""
    return ""


def whole_numbers(site: Site) -> Iterator[Suggestion]:
    """NK603: // where an index is divided."""
    nodes = list(site.inside(site.scope.node.body))
    here = [
        each
        for each in nodes
        if isinstance(each, ast.Subscript) and each.lineno <= site.finding.line <= (each.end_lineno or 0)
    ]
    names = {each.id for index in here for each in ast.walk(index.slice) if isinstance(each, ast.Name)}
    values = [value for name in names for value in site.scope.variables.get(name, []) if value is not None]
    found = [
        each for part in (*(index.slice for index in here), *values) for each in ast.walk(part)
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
    ]  # fmt: skip
    if found:
        yield Suggestion("Divide with //", tuple(dict.fromkeys(_floored(site, each) for each in found)))


def _floored(site: Site, node: ast.BinOp) -> Edit:
    return replaced(
        node, f"{in_brackets(site.text(node.left), node.left)} // {in_brackets(site.text(node.right), node.right)}"
    )


def joined_by_and(site: Site) -> Iterator[Suggestion]:
    """NK604, NK620: & between the comparisons of a mask."""
    for call in site.calls:
        mask = keyword(call, "mask")
        if mask is not None and isinstance(mask.value, ast.BoolOp) and isinstance(mask.value.op, ast.And):
            text = " & ".join(f"({site.text(each)})" for each in mask.value.values)
            yield Suggestion(f"Write `mask={text}`", (replaced(mask.value, text),))


def respelled(site: Site) -> Iterator[Suggestion]:
    """NK607, NK609: the keyword or the name of NKI that is meant, where only one is near."""
    from nkitools.suggestions.lint_interface import names_of, parameters_of, required_of

    for call in site.calls:
        name = site.scope.qualified(call.func)
        parameters = parameters_of(name)
        if parameters:
            yield from _keyword(call, parameters, required_of(name))
        elif isinstance(call.func, ast.Attribute) and name:
            module, _, word = name.rpartition(".")
            near = get_close_matches(word, names_of(module), 2, 0.8)
            if len(near) == 1 or (near and near[0].replace("_", "") == word.replace("_", "")):
                text = f"{site.text(call.func.value)}.{near[0]}"
                yield Suggestion(f"Write `{text}`", (replaced(call.func, text),))


def _keyword(call: ast.Call, parameters: tuple[str, ...], required: tuple[str, ...]) -> Iterator[Suggestion]:
    """Yield the parameter that an unknown keyword means: one that is missing, or the only one of a name like it."""
    used = {each.arg for each in call.keywords} | set(parameters[: len(call.args)])
    unknown = [each for each in call.keywords if each.arg is not None and each.arg not in parameters]
    free = [each for each in parameters if each not in used]
    missing = [each for each in required if each in free]
    only = (missing or (free if len(free) == 1 else []))[:1] if len(unknown) == 1 else []
    for each in unknown:
        name = each.arg or ""
        near = get_close_matches(name, missing, 1, 0.6) or only if missing else []
        meant = near or get_close_matches(name, free, 1, 0.6) or only
        if meant:
            line, start = each.lineno, each.col_offset
            edit = Edit(line, start, line, start + len(name.encode()), meant[0])
            yield Suggestion(f"Write `{meant[0]}=`", (edit,))
            return
