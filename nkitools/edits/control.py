"""The wrong variable or the wrong way: counters, programs, conditions, results."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from nkitools.edits.kinds import kind
from nkitools.edits.source import FUNCTIONS, Edit, Source, callee, replaced, room


@kind("wrong-counter", "the counter of another loop")
def wrong_counter(source: Source) -> Iterator[Edit]:
    """A loop's counter where it is used as an index, replaced by that of the loop around or of the same loop."""
    for node in source.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or not _is_place(source, node):
            continue
        counters = list(_counters(source, node))
        if node.id in counters:
            for other in counters:
                if other != node.id:
                    yield replaced(node, other)


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


@kind("wrong-program", "every program takes itself for the first, or for the only one")
def wrong_program(source: Source) -> Iterator[Edit]:
    """``program_id`` becomes 0, ``num_programs`` 1."""
    for node in source.nodes:
        if callee(node) == "program_id" and room(node) == "nl":
            yield replaced(node, "0")
        elif callee(node) == "num_programs" and room(node) == "nl":
            yield replaced(node, "1")


@kind("ignore-condition", "a condition is taken to hold always, or never")
def ignore_condition(source: Source) -> Iterator[Edit]:
    """Of statements and of conditional expressions."""
    for node in source.nodes:
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


@kind("swap-results", "two results change places")
def swap_results(source: Source) -> Iterator[Edit]:
    """The places where a function returns a tuple of names or calls."""
    for node in source.nodes:
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            elements = node.value.elts
            for first, second in pairwise(elements):
                yield source.swap(first, second)


@kind("swap-targets", "two names of one assignment change places")
def swap_targets(source: Source) -> Iterator[Edit]:
    """``a, b = f()`` becomes ``b, a = f()``, in loops too."""
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            target: ast.expr = node.targets[0]
            if isinstance(node.value, ast.Tuple) and len({source.says(each) for each in node.value.elts}) == 1:
                continue  # all of them are given the same
        elif isinstance(node, (ast.For, ast.comprehension)):
            target = node.target
        else:
            continue
        for group in (each for each in ast.walk(target) if isinstance(each, ast.Tuple)):
            for first, second in pairwise(group.elts):
                yield source.swap(first, second)
