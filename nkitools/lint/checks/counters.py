"""NK601: assignments to the counter of a loop on the device, which change no register."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Register, Value
from nkitools.lint.context import Context

_OFFSET = "Let it be a run-time offset: .ap(scalar_offset=i)."
_COPY = "Copy it into a register of its own with nisa.register_move, and change that."


def begun(context: Context, node: ast.For, counter: Value) -> None:
    """Remember the counters of the loops on the device that are being looked at."""
    if isinstance(counter, Register) and counter.counter and isinstance(node.target, ast.Name):
        context.counters.append(node.target.id)


def over(context: Context, node: ast.For) -> None:
    """Release the counter at the end of a loop: from then on the counter is an ordinary name."""
    if isinstance(node.target, ast.Name) and node.target.id in context.counters:
        context.counters.remove(node.target.id)


def bound(context: Context, target: ast.Name, before: Value, value: Value) -> None:
    """``i = i + 1`` in ``for i in nl.dynamic_range(n)``."""
    if target.id in context.counters:
        written(context, target, target.id)


def updated(context: Context, node: ast.AugAssign, left: Value, right: Value) -> None:
    """``i += 1`` there."""
    if isinstance(node.target, ast.Name) and node.target.id in context.counters:
        written(context, node, node.target.id)


def computed(context: Context, node: ast.BinOp, left: Value, right: Value) -> None:
    """``2 * i``, which the migration guide refuses; AWS's own kernels compute addresses that way."""
    counts = any(isinstance(each, Register) and each.counter for each in (left, right))
    if counts and not context.language.traced:
        context.find("NK616", node, f"`{ast.unparse(node)}` computes with the counter of a loop on the device", _OFFSET)


def written(context: Context, node: ast.AST, name: str) -> None:
    """Say so."""
    context.find("NK601", node, f"`{name}`, the counter of a loop on the device, is written; it is read-only", _COPY)


LISTENS = {"loop": (begun,), "loop over": (over,), "bind": (bound,), "update": (updated,), "binary": (computed,)}
