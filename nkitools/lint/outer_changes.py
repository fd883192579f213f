"""Changes of Python objects that live outside of the body of a loop on the device, as far as the source shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nkitools.lint.scope import Function, Scope, own_nodes

# Only lists have these methods; those below belong to user classes too.
_OF_LISTS = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "popleft"})
_OF_CONTAINERS = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "update"
})  # fmt: skip
_MAKERS = frozenset({"bytearray", "dict", "list", "set"})
_DISPLAYS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)
_MAKING_MODULE = "collections."
_DEEPEST = 8  # calls and aliases that are followed


@dataclass(frozen=True)
class Change:
    """A change of an object that lives outside of a body."""

    node: ast.AST
    name: str  # the outer variable, with the attribute or item that is set


@dataclass
class Body:
    """The body of a loop on the device: its statements, and the scopes of the names that each turn makes anew."""

    scope: Scope  # where its names are looked up
    own: set[int] = field(default_factory=set)  # the ids of the scopes that are made anew
    parameters: frozenset[str] = frozenset()  # of a lambda, which has no scope

    @classmethod
    def of(cls, scope: Scope) -> Body:
        """Return the body that is a function with this scope."""
        return cls(scope, {id(each) for each in scope.all()})

    def changes(self, nodes: Sequence[ast.AST], depth: int = 0) -> Iterator[Change]:
        """Yield what the statements change outside, and what the functions of the file that they call change."""
        for node in nodes:
            yield from self._change(node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and depth < _DEEPEST:
                yield from self._called(node.func.id, depth)

    def _called(self, name: str, depth: int) -> Iterator[Change]:
        owner = self.scope.owner(name)
        node = None if owner is None else owner.definitions.get(name)
        inner = None if owner is None or not isinstance(node, Function) else owner.scopes.get(node)
        if inner is None or id(inner) in self.own:
            return
        there = Body(inner, self.own | {id(each) for each in inner.all()})
        yield from there.changes(inner.nodes, depth + 1)

    def _change(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in self.scope.outside:
                yield from self._outer(node, node)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield from self._outer(node, node)
            case ast.Call(func=ast.Attribute(value=base, attr=method)):
                if method in _OF_LISTS or (method in _OF_CONTAINERS and self._is_container(base)):
                    yield from self._outer(base, node)
            case ast.Call(func=ast.Name(id="setattr" | "delattr" as name), args=[base, *_]):
                if self.scope.owner(name) is None:
                    yield from self._outer(base, node)

    def _outer(self, target: ast.expr, node: ast.AST) -> Iterator[Change]:
        root = self._root(target)
        if root is not None and self._is_outer(root):
            yield Change(node, ast.unparse(target))

    def _root(self, node: ast.expr, depth: int = 0) -> ast.Name | None:
        """Return the variable that an expression is a part of; a name that only stands for a part is followed."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        values = self.scope.variables.get(node.id, []) if self.scope.owner(node.id) is self.scope else []
        only = values[0] if len(values) == 1 and depth < _DEEPEST else None
        if isinstance(only, (ast.Attribute, ast.Subscript, ast.Name)):
            return self._root(only, depth + 1) or node
        return node

    def _is_outer(self, name: ast.Name) -> bool:
        owner = self.scope.owner(name.id)
        if name.id in self.parameters or owner is None or owner.qualified(name):
            return False
        # `self` of a method that is a body is the object that the loop's caller has.
        bound = owner is self.scope and owner.outer is not None and isinstance(owner.outer.node, ast.ClassDef)
        return id(owner) not in self.own or (bound and name.id == "self")

    def _is_container(self, base: ast.expr) -> bool:
        """Return whether a variable was made as a list, dictionary or set."""
        owner = self.scope.owner(base.id) if isinstance(base, ast.Name) else None
        values = owner.variables.get(base.id, []) if owner is not None and isinstance(base, ast.Name) else []
        return owner is not None and any(value is not None and _makes_container(owner, value) for value in values)


def _makes_container(owner: Scope, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, _DISPLAYS)
    plain = isinstance(value.func, ast.Name) and value.func.id in _MAKERS
    return plain or owner.qualified(value.func).startswith(_MAKING_MODULE)


def changes_of_function(scope: Scope) -> Iterator[Change]:
    """Yield the changes that a function makes as a body."""
    yield from Body.of(scope).changes(scope.nodes)


def changes_of_lambda(node: ast.Lambda, scope: Scope) -> Iterator[Change]:
    """Yield the changes that a lambda of a function with this scope makes as a body."""
    parameters = frozenset(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
    yield from Body(scope, parameters=parameters).changes(tuple(own_nodes([node.body])))
