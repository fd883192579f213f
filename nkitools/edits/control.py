"""The wrong variable or the wrong way: counters, programs, conditions, results."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from nkitools.edits.kinds import kind
from nkitools.edits.source import FUNCTIONS, Edit, Source, callee, replaced, room


@kind("wrong-counter", "the counter of another loop", ast.Name)
def wrong_counter(source: Source, node: ast.Name) -> Iterator[Edit]:
    """A loop's counter where it is used as an index, replaced by that of the loop around or of the same loop."""
    counters = list(_counters(source, node))
    if isinstance(node.ctx, ast.Load) and node.id in counters and _is_place(source, node):
        yield from (replaced(node, other) for other in counters if other != node.id)


def _counters(source: Source, node: ast.AST) -> Iterator[str]:
    """The names that loops and comprehensions around a node bind to numbers."""
    for around in source.enclosing(node):
        loops: list[ast.For | ast.comprehension] = []
        if isinstance(around, ast.For):
            loops = [around]
        elif isinstance(around, (ast.ListComp, ast.GeneratorExp)):
            loops = list(around.generators)
        for loop in loops:
            yield from _names(loop.target)


def _names(target: ast.expr) -> list[str]:
    return [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]


def _is_place(source: Source, node: ast.AST) -> bool:
    """Return whether a name is part of an index, a window or an offset."""
    for around in source.enclosing(node):
        if isinstance(around, FUNCTIONS):
            return False
        if isinstance(around, (ast.Subscript, ast.Slice)) or callee(around) == "ds":
            return True
        if isinstance(around, ast.keyword) and around.arg in ("offset", "pattern"):
            return True
        if isinstance(around, ast.Call):
            return False
    return False


@kind("wrong-program", "every program takes itself for the first, or for the only one", ast.Call)
def wrong_program(source: Source, node: ast.Call) -> Iterator[Edit]:
    """``program_id`` becomes 0, ``num_programs`` 1."""
    if callee(node) == "program_id" and room(node) == "nl":
        yield replaced(node, "0")
    elif callee(node) == "num_programs" and room(node) == "nl":
        yield replaced(node, "1")


@kind("ignore-condition", "a condition is taken to hold always, or never", ast.AST)
def ignore_condition(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Let an `if`, or a conditional expression, take one side whatever its condition says."""
    if isinstance(node, ast.If):
        for always in ("True", "False"):
            yield replaced(node.test, always)
    elif isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield replaced(node, source.says(side))
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield replaced(node, source.says(part))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield replaced(node, source.says(node.operand))


@kind("swap-results", "two results change places", ast.Return)
def swap_results(source: Source, node: ast.Return) -> Iterator[Edit]:
    """The places where a function returns a tuple of names or calls."""
    if isinstance(node.value, ast.Tuple):
        yield from (source.swap(*pair) for pair in pairwise(node.value.elts))


@kind("swap-targets", "two names of one assignment change places", ast.AST)
def swap_targets(source: Source, node: ast.AST) -> Iterator[Edit]:
    """``a, b = f()`` becomes ``b, a = f()``, in loops too."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        target: ast.expr = node.targets[0]
        if isinstance(node.value, ast.Tuple) and len({source.says(each) for each in node.value.elts}) == 1:
            return  # all of them are given the same
    elif isinstance(node, (ast.For, ast.comprehension)):
        target = node.target
    else:
        return
    for group in (each for each in ast.walk(target) if isinstance(each, ast.Tuple)):
        yield from (source.swap(*pair) for pair in pairwise(group.elts))
