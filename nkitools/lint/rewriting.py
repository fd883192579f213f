"""Rewrites what a newer NKI has under another name or in another form, where the new text follows from the old one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.edits.source import Edit, Text, replaced
from nkitools.facts import versions
from nkitools.lint.module import Module, parse
from nkitools.lint.scope import Function, Scope, own_nodes

_RANGE = "Use Python's range."  # of the names that Python's own function replaces
_DYNAMIC = "nki.language.dynamic_range"
_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)
_MEMORIES = frozenset({"hbm", "private_hbm", "psum", "sbuf", "shared_hbm"})
_ROUNDS = 16  # loops in loops are rewritten one after the other


def rewritten(text: str, path: str) -> str:
    """Return the text of a file in the form of the newest NKI. Raises `Unreadable`."""
    for _ in range(_ROUNDS):
        found = list(edits(parse(text, path)))
        if not found:
            break
        text = Text(text).edited(found)
    return text


def line_to_write(text: str, path: str, line: int) -> str:
    """Return the rewritten form of a line; '' if it stays, or if the rewrite takes several lines."""
    found = [each for each in edits(parse(text, path)) if each.line == each.end_line == line and "\n" not in each.text]
    after = "".join(f"`, and behind the block `{each.after}" for each in found if each.after)
    return line_after(text, found, line) + after if found else ""


def line_after(text: str, found: list[Edit], line: int) -> str:
    """Return a line after some edits, without the space around it."""
    return Text(Text(text).edited(found)).lines[line - 1].strip()


def edits(module: Module) -> Iterator[Edit]:
    """Yield the edits of a file of the modern dialect: names, memories as texts, kinds of dependencies, loops."""
    if "legacy" in module.dialects:
        return
    loops: list[Edit] = []  # of one loop at a time: loops in loops may end at one place
    for scope in module.scope.all():
        for node in scope.nodes:
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
                yield from _name(scope, node)
            elif isinstance(node, ast.Call):
                yield from _memories(scope, node)
                yield from _dependency(module, scope, node)
            elif isinstance(node, ast.For | ast.While) and not loops:
                make = _counted_loop if isinstance(node, ast.For) else _loop_of_register
                loops = list(make(module, scope, node))  # type: ignore[arg-type]
                yield from loops


def _name(scope: Scope, node: ast.Attribute | ast.Name) -> Iterator[Edit]:
    row = versions.by_full_name().get(scope.qualified(node))
    if row is None or not (row.until or row.deprecated):
        return
    if row.instead == _RANGE and scope.owner("range") is None:
        yield replaced(node, "range")
    elif ":" in row.home and isinstance(node, ast.Attribute):
        yield replaced(node, f"{ast.unparse(node.value)}.{row.home.partition(':')[2]}")


def _memories(scope: Scope, node: ast.Call) -> Iterator[Edit]:
    """``buffer="sbuf"``."""
    if not scope.qualified(node.func).startswith("nki.language.") or not isinstance(node.func, ast.Attribute):
        return
    for each in node.keywords:
        value = each.value.value if isinstance(each.value, ast.Constant) else None
        if each.arg == "buffer" and value in _MEMORIES:
            yield replaced(each.value, f"{ast.unparse(node.func.value)}.{value}")


def _dependency(module: Module, scope: Scope, node: ast.Call) -> Iterator[Edit]:
    """``second.depends_on(first)``, whose kind was a wait on the hardware."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "depends_on" or not node.args:
        return
    isa = imported(scope, "nki.isa")
    if isa and not any(each.arg in (None, "kind") for each in node.keywords):
        yield module.source.with_argument(node, f"kind={isa}.dependency.runtime")


def imported(scope: Scope, module: str) -> str:
    """Return the name of a module of NKI in a scope; '' if it has none."""
    names = (name for each in (scope, scope.module) for name in each.imports)
    return next((name for name in names if scope.named(name) == module), "")


def _counted_loop(module: Module, scope: Scope, node: ast.For) -> Iterator[Edit]:
    """``for i in nl.dynamic_range(n):`` as a function and nl.fori_loop, where each turn stands for itself."""
    call = node.iter
    if (
        not isinstance(call, ast.Call)
        or scope.qualified(call.func) != _DYNAMIC
        or not isinstance(node.target, ast.Name)
    ):
        return
    bounds = _bounds(call)
    if bounds is None or not isinstance(call.func, ast.Attribute) or not _stands_for_itself(scope, node):
        return
    lower, upper, step = bounds
    language = ast.unparse(call.func.value)
    arguments = f"{lower}, {upper}, {{name}}{step}"
    yield from _as_function(module, scope, node, node.target.id, f"{language}.fori_loop({arguments})")


def _loop_of_register(module: Module, scope: Scope, node: ast.While) -> Iterator[Edit]:
    """``while register:`` as a function that returns the register, and nl.while_loop."""
    language = imported(scope, "nki.language")
    if not language or not isinstance(node.test, ast.Name) or not _stands_for_itself(scope, node):
        return
    (made, *others) = scope.variables.get(node.test.id, []) or [None]
    if others or not isinstance(made, ast.Call) or scope.qualified(made.func) != "nki.isa.register_alloc":
        return
    register = node.test.id
    after = f"{language}.while_loop({register}, {{name}})"
    yield from _as_function(module, scope, node, "_", after, f"return {register}")


def _as_function(
    module: Module, scope: Scope, node: ast.For | ast.While, parameter: str, after: str, end: str = ""
) -> Iterator[Edit]:
    """Yield the edits that make a loop a function of one parameter; ``after`` follows, ``end`` ends its body."""
    if not isinstance(scope.node, Function) or node.body[0].lineno == node.lineno:
        return
    stem = node.test.id if isinstance(node, ast.While) and isinstance(node.test, ast.Name) else parameter
    name = new_name(scope, f"{stem.strip('_') or 'loop'}_body")
    indent, inner = (" " * _indent(module.lines[each.lineno - 1]) for each in (node, node.body[0]))
    last = node.end_lineno or node.lineno
    column = len(module.lines[last - 1].encode())
    written = after.format(name=name)
    header_end = _end_of_header(module, node)
    if header_end is not None:
        yield Edit(node.lineno, node.col_offset, *header_end, f"def {name}({parameter}):", written)
        tail = f"\n{inner}{end}" if end else ""
        yield Edit(last, column, last, column, f"{tail}\n\n{indent}{written}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _bounds(call: ast.Call) -> tuple[str, str, str] | None:
    given = dict(zip(("start", "stop", "step"), map(ast.unparse, call.args), strict=False))
    given |= {each.arg: ast.unparse(each.value) for each in call.keywords if each.arg}
    if "start" not in given or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    lower, upper = (given["start"], given["stop"]) if "stop" in given else ("0", given["start"])
    return lower, upper, f", step={given['step']}" if "step" in given else ""


def _end_of_header(module: Module, node: ast.For | ast.While) -> tuple[int, int] | None:
    """Return line and column after the colon; None if a comment may hide it."""
    steered = node.iter if isinstance(node, ast.For) else node.test
    line, column = steered.end_lineno or node.lineno, steered.end_col_offset or 0
    rest = module.lines[line - 1].encode()[column:]
    colon = rest.find(b":")
    return None if colon < 0 or b"#" in rest[:colon] else (line, column + colon + 1)


def _stands_for_itself(scope: Scope, node: ast.For | ast.While) -> bool:
    """Return whether a loop's body leaves nothing behind in Python, and is not left before its end."""
    inside = list(own_nodes(node.body))
    if node.orelse or any(isinstance(each, _LEAVING) for each in inside):
        return False
    bound = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    targets = [node.target] if isinstance(node, ast.For) else []
    within = {id(each) for part in (*node.body, *targets) for each in ast.walk(part)}
    outside = (each for each in ast.walk(scope.node) if isinstance(each, ast.Name) and id(each) not in within)
    bound |= {each.id for part in targets for each in ast.walk(part) if isinstance(each, ast.Name)}
    return not any(each.id in bound for each in outside)


def new_name(scope: Scope, name: str) -> str:
    """Return a name that a scope does not know, the given one or the given one with a number."""
    found, number = name, 2
    while scope.owner(found) is not None:
        found, number = f"{name}_{number}", number + 1
    return found
