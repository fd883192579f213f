"""The names that the body of a loop carries on from one turn to the next: it reads them before it binds them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nkitools.lint.legacy_scopes import own_names
from nkitools.lint.scope import own_nodes, stored


def carried(loop: ast.For) -> dict[str, int]:
    """Return the names that a loop's body reads before it binds them, with the first line that binds each."""
    bound: dict[str, int] = {}
    for each in own_nodes(loop.body):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            bound[each.id] = min(bound.get(each.id, each.lineno), each.lineno)
    if not bound:
        return {}
    reads = _Reads()
    reads.block(loop.body, {each.id for each in stored([loop.target])})
    return {name: line for name, line in sorted(bound.items()) if name in reads.exposed}


class _Reads:
    """Follows a body in its order; ``exposed`` are the names that are read where nothing in the body has bound them."""

    def __init__(self) -> None:
        self.exposed: set[str] = set()

    def block(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Return the names bound after some statements, of those ``bound`` before them."""
        for statement in body:
            bound = self._statement(statement, bound)
        return bound

    def _statement(self, node: ast.stmt, bound: set[str]) -> set[str]:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                bound = self._read(test, bound)
                return self.block(body, bound) & self.block(orelse, bound)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                bound = self._read(iterated, bound) | {each.id for each in stored([target])}
                return self.block(orelse, self.block(body, bound))
            case ast.While(test=test, body=body, orelse=orelse):
                return self.block(orelse, self.block(body, self._read(test, bound)))
            case ast.With(items=items, body=body):
                for item in items:
                    bound = self._read(item, bound)
                return self.block(body, bound)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                after = self.block(orelse, self.block(body, bound))
                for handler in handlers:
                    after &= self.block(handler.body, bound)
                return self.block(final, after)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._use(name, self._read(value, bound))
                return bound | {name}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                return bound | {name}  # what is inside runs elsewhere
        return self._read(node, bound)

    def _read(self, node: ast.AST, bound: set[str]) -> set[str]:
        """Return the names bound after a simple statement or an expression: its reads come before what it binds."""
        hidden = own_names(node)
        found = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id not in hidden]
        for each in found:
            if isinstance(each.ctx, ast.Load):
                self._use(each.id, bound)
        return bound | {each.id for each in found if isinstance(each.ctx, ast.Store)}

    def _use(self, name: str, bound: set[str]) -> None:
        if name not in bound:
            self.exposed.add(name)
