"""The names that the body of a loop carries on from one turn to the next: it reads them before it binds them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from nkitools.lint.legacy_scopes import own_names
from nkitools.lint.scope import Function, own_nodes, stored


@dataclass(frozen=True)
class BoundUnder:
    """A name that is bound wherever a condition holds."""

    name: str
    condition: str  # its source
    reads: frozenset[str]  # the names in the condition


Bound = set[str | BoundUnder]  # what is bound at a place of a body: always, or under a condition


def carried(loop: ast.For, function: Function | None = None) -> dict[str, int]:
    """Return the names that a loop's body reads before it binds them, with the first line that binds each.

    The function around the loop shows which conditions hold in every turn or in none.
    """
    bound: dict[str, int] = {}
    for each in own_nodes(loop.body):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            bound[each.id] = min(bound.get(each.id, each.lineno), each.lineno)
    if not bound:
        return {}
    reads = Reads(*((set(), set()) if function is None else _steady(loop, function)))
    reads.block(loop.body, {each.id for each in stored([loop.target])})
    return {name: line for name, line in sorted(bound.items()) if name in reads.exposed}


class Reads:
    """Follows a body in order; ``exposed``: the names that it reads before it binds them."""

    def __init__(self, constants: set[str], own: set[str]) -> None:
        self.exposed: set[str] = set()
        self.constants = constants  # names that no loop binds
        self.own = own  # names that this loop alone binds
        self.is_steady = True  # every turn comes by here, or none does

    def block(self, body: Iterable[ast.stmt], bound: Bound) -> Bound:
        """Return the names bound after some statements, of those ``bound`` before them."""
        for statement in body:
            bound = self._statement(statement, bound)
        return bound

    def _statement(self, node: ast.stmt, bound: Bound) -> Bound:
        match node:
            case ast.If():
                return self._if(node, bound)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                bound = with_names(self.read(iterated, bound), {each.id for each in stored([target])})
                return self.block(orelse, self.block(body, bound))
            case ast.While(test=test, body=body, orelse=orelse):
                return self.block(orelse, self.block(body, self.read(test, bound)))
            case ast.With(items=items, body=body):
                for item in items:
                    bound = self.read(item, bound)
                return self.block(body, bound)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                after = self.block(orelse, self.block(body, bound))
                for handler in handlers:
                    after &= self.block(handler.body, bound)
                return self.block(final, after)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.use({name}, self.read(value, bound))
                return with_names(bound, {name})
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                return with_names(bound, {name})  # what is inside runs elsewhere
        return self.read(node, bound)

    def _if(self, node: ast.If, bound: Bound) -> Bound:
        """Return the names that both branches bind, and, under the condition, those that only the first binds."""
        bound = self.read(node.test, bound)
        condition = ast.unparse(node.test)
        holds = {each.name for each in bound if isinstance(each, BoundUnder) and each.condition == condition}
        reads = _names_alone(node.test)
        before, self.is_steady = self.is_steady, self.is_steady and reads is not None and reads <= self.constants
        then, otherwise = self.block(node.body, bound | holds), self.block(node.orelse, bound)
        if self.is_steady:
            # Every turn takes the same branch: what is read behind it was bound in the first turn, and so in each.
            ours = {each for each in then | otherwise if each in self.own}
            then, otherwise = then | ours, otherwise | ours
        self.is_steady = before
        if reads is None or reads & {each.id for each in stored([*node.body, *node.orelse])}:
            return then & otherwise
        under = {BoundUnder(each, condition, reads) for each in then - otherwise if isinstance(each, str)}
        return (then & otherwise) | under

    def read(self, node: ast.AST, bound: Bound) -> Bound:
        """Return the names bound after a simple statement or an expression, which reads before it binds."""
        hidden = own_names(node)
        found = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id not in hidden]
        self.use({each.id for each in found if isinstance(each.ctx, ast.Load)}, bound)
        return with_names(bound, {each.id for each in found if isinstance(each.ctx, ast.Store)})

    def use(self, names: set[str], bound: Bound) -> None:
        """Note the names that are read and not bound."""
        self.exposed |= names - {each for each in bound if isinstance(each, str)}


def _steady(loop: ast.For, function: Function) -> tuple[set[str], set[str]]:
    """Return the names that no loop of a function binds or changes, and those that only ``loop`` binds."""
    nodes = list(own_nodes(function.body))
    loops = [each for each in nodes if isinstance(each, (ast.For, ast.While))]
    inner = [each for each in own_nodes(loops) if isinstance(each, (ast.Attribute, ast.Subscript))]
    varying = {each.id for each in stored(loops)} | {
        each.value.id for each in inner if isinstance(each.value, ast.Name)
    }
    inside = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
    elsewhere = {each.id for each in stored(function.body) if each.lineno not in inside}
    elsewhere |= {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    names = {each.id for each in nodes if isinstance(each, ast.Name)}
    return names - varying, {each.id for each in stored([loop])} - elsewhere


def with_names(bound: Bound, names: set[str]) -> Bound:
    """Return the bound names after ``names`` are bound; conditions that read one of them are dropped."""
    if not names:
        return bound
    return {each for each in bound if isinstance(each, str) or not each.reads & names} | names


def _names_alone(test: ast.expr) -> frozenset[str] | None:
    """Return the names in a condition that depends only on names; None if it has calls, items or attributes."""
    inner = (ast.Call, ast.Attribute, ast.Subscript, ast.NamedExpr, ast.Await, ast.Yield, ast.comprehension)
    if any(isinstance(each, inner) for each in ast.walk(test)):
        return None
    return frozenset(each.id for each in ast.walk(test) if isinstance(each, ast.Name))
