"""NK601, NK605, NK622: what the bodies of nl.fori_loop and nl.while_loop return, leave behind and change outside."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nkitools.facts.light_classes import replace
from nkitools.lint.abstract_values import Container, Sequence, Tensor, Value
from nkitools.lint.body_arguments import loop_calls
from nkitools.lint.context import Context
from nkitools.lint.project import Found
from nkitools.lint.scope import Function

if TYPE_CHECKING:
    from nkitools.lint.outer_changes import Change

_GROWING = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})
_BEFORE = "Create the tensor in front of the loop, and let the body write into it."


def returns(context: Context, node: Function) -> None:
    """Check that the body of a fori_loop returns nothing."""
    for each in context.scope.nodes if context.loop_body == "fori_loop" else ():
        nothing = isinstance(each, ast.Return) and isinstance(each.value, ast.Constant) and each.value.value is None
        if isinstance(each, ast.Return) and each.value is not None and not nothing:
            message = f"`{node.name}`, the body of nl.fori_loop, returns a value; it cannot"
            remedy = "Write what the loop computes into a tensor that is created in front of it."
            context.find("NK601", each, message, remedy)


def grown(context: Context, node: ast.Call, base: ast.expr, method: str, *values: Value) -> None:
    """``tiles.append(tile)`` of a list that lives outside of the body."""
    kept = (each for each, value in zip(node.args, values, strict=False) if isinstance(value, Tensor))
    if method in _GROWING and _is_outer(context, base) and any(_is_own(context, each) for each in kept):
        _left(context, node, ast.unparse(base))


def put(context: Context, node: ast.Subscript, base: Value, kept: ast.expr, value: Value) -> None:
    """``tiles[0] = tile`` of one."""
    holds = isinstance(base, (Sequence, Container)) and isinstance(value, Tensor)
    if holds and _is_outer(context, node.value) and _is_own(context, kept):
        _left(context, node, ast.unparse(node.value))


def bound(context: Context, target: ast.Name, before: Value, value: Value) -> None:
    """``nonlocal tile``."""
    if context.loop_body and isinstance(value, Tensor) and target.id in context.scope.outside:
        _left(context, target, target.id)


def _is_outer(context: Context, base: ast.expr) -> bool:
    owner = context.scope.owner(base.id) if isinstance(base, ast.Name) else None
    return bool(context.loop_body) and owner is not None and owner is not context.scope


def _is_own(context: Context, node: ast.expr) -> bool:
    """Return whether the loop body itself makes the value of an expression."""
    return isinstance(node, ast.Call) or (isinstance(node, ast.Name) and context.scope.owner(node.id) is context.scope)


def _left(context: Context, node: ast.AST, name: str) -> None:
    message = (
        f"a tensor that the body of nl.{context.loop_body} makes is kept in `{name}`, outside of it; after the loop it "
        "is gone"
    )
    context.find("NK605", node, message, _BEFORE)


def traced_once(context: Context, node: Function, names: object) -> None:
    """Report the outer objects that a loop body changes, and those that the bodies of a function's own loops change."""
    calls = list(loop_calls(context.scope))
    if not context.modern or not context.language.traced or not (context.loop_body or calls):
        return
    from nkitools.lint.outer_changes import changes_of_body, changes_of_function  # for loops on the device alone

    if context.loop_body and context.scope.outer is not None:
        found = Found(context.module, context.scope.outer, node)
        _changed(context, context.loop_body, changes_of_function(found, context.project))
    for loop, body in calls:
        named = context.resolve(body) if isinstance(body, ast.Name) else None
        if named is None or named.scope is not context.scope:  # a nested function is looked at as one of its own
            _changed(context, loop, changes_of_body(body, context.module, context.scope, context.project))


def _changed(context: Context, loop: str, changes: Iterable[Change]) -> None:
    from nkitools.lint.outer_changes import KEEP, traced_once_message

    said = {(each.file, each.line) for each in context.findings if each.severity == "error"}
    for each in changes:
        if (each.module.path, getattr(each.node, "lineno", 0)) not in said:
            there = replace(context, module=each.module, scope=each.scope)
            there.find("NK622", each.node, traced_once_message(f"changes `{each.name}`", loop), KEEP)


LISTENS = {"function": (returns,), "method": (grown,), "put": (put,), "bind": (bound,), "left": (traced_once,)}
