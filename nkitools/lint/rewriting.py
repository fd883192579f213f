"""Rewrites what a newer NKI has under another name or in another form, where the new text follows from the old one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from nkitools.dialects import versions
from nkitools.lint.module import Module, parse
from nkitools.lint.scope import Function, Scope, own_nodes

_RANGE = "Use Python's range."  # of the names that Python's own function replaces
_DYNAMIC = "nki.language.dynamic_range"
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)
_MEMORIES = frozenset({"hbm", "private_hbm", "psum", "sbuf", "shared_hbm"})
_ROUNDS = 16  # loops in loops are rewritten one after the other


class Edit(NamedTuple):
    """A piece of a text and what takes its place: lines from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    after: str = ""  # the line that follows the block which begins here


def rewritten(text: str, path: str) -> str:
    """Return the text of a file in the form of the newest NKI. Raises `Unreadable`."""
    for _ in range(_ROUNDS):
        found = list(edits(parse(text, path)))
        if not found:
            break
        text = _applied(text, found)
    return text


def line_to_write(text: str, path: str, line: int) -> str:
    """Return what a line becomes that is rewritten alone, '' for one that stays or that takes several lines."""
    found = [each for each in edits(parse(text, path)) if each.line == each.end_line == line and "\n" not in each.text]
    after = "".join(f"`, and behind the block `{each.after}" for each in found if each.after)
    return _applied(text, found).splitlines()[line - 1].strip() + after if found else ""


def edits(module: Module) -> Iterator[Edit]:
    """Yield the edits of a file of the modern dialect: names, memories as texts, loops over nl.dynamic_range."""
    if "legacy" in module.dialects:
        return
    loops: list[Edit] = []  # of one loop at a time: loops in loops may end at one place
    for scope in module.scope.all():
        for node in scope.nodes:
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
                yield from _name(scope, node)
            elif isinstance(node, ast.Call):
                yield from _memories(scope, node)
            elif isinstance(node, ast.For) and not loops:
                loops = list(_loop(module, scope, node))
                yield from loops


def _name(scope: Scope, node: ast.Attribute | ast.Name) -> Iterator[Edit]:
    row = versions.by_full_name().get(scope.qualified(node))
    if row is None or not (row.until or row.deprecated):
        return
    if row.instead == _RANGE and scope.owner("range") is None:
        yield _replaced(node, "range")
    elif ":" in row.home and isinstance(node, ast.Attribute):
        yield _replaced(node, f"{ast.unparse(node.value)}.{row.home.partition(':')[2]}")


def _memories(scope: Scope, node: ast.Call) -> Iterator[Edit]:
    """``buffer="sbuf"``."""
    if not scope.qualified(node.func).startswith("nki.language.") or not isinstance(node.func, ast.Attribute):
        return
    for each in node.keywords:
        value = each.value.value if isinstance(each.value, ast.Constant) else None
        if each.arg == "buffer" and value in _MEMORIES:
            yield _replaced(each.value, f"{ast.unparse(node.func.value)}.{value}")


def _loop(module: Module, scope: Scope, node: ast.For) -> Iterator[Edit]:
    """``for i in nl.dynamic_range(n):`` as a function and nl.fori_loop, where each turn stands for itself."""
    call = node.iter
    if not isinstance(call, ast.Call) or scope.qualified(call.func) != _DYNAMIC or not isinstance(scope.node, Function):
        return
    if not isinstance(node.target, ast.Name) or not _stands_for_itself(scope, node):
        return
    bounds = _bounds(call)
    first = module.lines[node.lineno - 1]
    if bounds is None or not isinstance(call.func, ast.Attribute) or node.body[0].lineno == node.lineno:
        return
    name = _new_name(scope, f"{node.target.id.strip('_') or 'loop'}_body")
    indent = re.match(r"\s*", first)
    assert indent is not None
    last = node.end_lineno or node.lineno
    end = len(module.lines[last - 1].encode())
    after = f"{ast.unparse(call.func.value)}.fori_loop({bounds[0]}, {bounds[1]}, {name}{bounds[2]})"
    header_end = _end_of_header(module, node)
    if header_end is not None:
        yield Edit(node.lineno, node.col_offset, *header_end, f"def {name}({node.target.id}):", after)
        yield Edit(last, end, last, end, f"\n\n{indent[0]}{after}")


def _bounds(call: ast.Call) -> tuple[str, str, str] | None:
    given = dict(zip(("start", "stop", "step"), map(ast.unparse, call.args), strict=False))
    given |= {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
    if "start" not in given or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    lower, upper = (given["start"], given["stop"]) if "stop" in given else ("0", given["start"])
    return lower, upper, f", step={given['step']}" if "step" in given else ""


def _end_of_header(module: Module, node: ast.For) -> tuple[int, int] | None:
    """Return line and column behind the colon, None where a comment may hide it."""
    line, column = node.iter.end_lineno or node.lineno, node.iter.end_col_offset or 0
    rest = module.lines[line - 1].encode()[column:]
    colon = rest.find(b":")
    return None if colon < 0 or b"#" in rest[:colon] else (line, column + colon + 1)


def _stands_for_itself(scope: Scope, node: ast.For) -> bool:
    """Return whether a loop's body leaves nothing behind in Python, and is not left before its end."""
    inside = list(own_nodes(node.body))
    if node.orelse or any(isinstance(each, _LEAVING) for each in inside):
        return False
    bound = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    within = {id(each) for part in (*node.body, node.target) for each in ast.walk(part)}
    outside = (each for each in ast.walk(scope.node) if isinstance(each, ast.Name) and id(each) not in within)
    bound |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    return not any(each.id in bound for each in outside)


def _new_name(scope: Scope, name: str) -> str:
    found, number = name, 2
    while scope.owner(found) is not None:
        found, number = f"{name}_{number}", number + 1
    return found


def _replaced(node: ast.expr, text: str) -> Edit:
    return Edit(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0, text)


def _applied(text: str, found: list[Edit]) -> str:
    """Return the text after edits that do not overlap."""
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw = b"".join(lines)
    spans = sorted({(starts[a - 1] + b, starts[c - 1] + d, new) for a, b, c, d, new, _ in found}, reverse=True)
    for start, end, new in spans:
        raw = raw[:start] + new.encode() + raw[end:]
    return raw.decode()
