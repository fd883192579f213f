"""Changes of Python objects that live outside of the body of a loop on the device, as far as the source shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nkitools.lint.module import Module
from nkitools.lint.object_classes import attributes, class_named, member, receiver_of
from nkitools.lint.project import Found, Project
from nkitools.lint.scope import Function, Scope, own_nodes

# Only lists have these methods; those below belong to user classes too.
OF_LISTS = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "popleft"})
OF_CONTAINERS = frozenset({
    "add", "clear", "difference_update", "discard", "intersection_update", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "update"
})  # fmt: skip
_CONTAINERS = frozenset({"bytearray", "dict", "list", "set"})
_DISPLAYS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)
_MAKING_MODULE = "collections."
_CHANGING = frozenset({"delattr", "next", "setattr"})  # builtins that change their first argument
KEEP = "Keep what changes from turn to turn in a tensor in SBUF or HBM that is created in front of the loop."
_DEEPEST = 8  # calls and aliases that are followed


@dataclass(frozen=True)
class Change:
    """A change of an object that lives outside of a body."""

    node: ast.AST
    name: str  # the outer variable, with the attribute or item that is set
    module: Module
    scope: Scope  # of the function that makes the change


Called = tuple[ast.AST, tuple[str, ...]]  # a function, and its parameters that are objects from outside of the body


@dataclass
class Body:
    """The body of a loop on the device: its statements, and the scopes of the names that each turn makes anew."""

    project: Project
    module: Module
    scope: Scope  # where its names are looked up
    own: frozenset[int] = frozenset()  # the ids of the scopes that are made anew
    parameters: frozenset[str] = frozenset()  # of a lambda, which has no scope
    # What parameters stand for, by the id of their scope and their name: an expression of the caller.
    given: Mapping[tuple[int, str], tuple[Body, ast.expr]] = field(default_factory=dict)
    called: set[Called] = field(default_factory=set)  # what was followed already

    # --- changes -----------------------------------------------------------------------------------------------------

    def changes(self, nodes: Sequence[ast.AST], depth: int = 0) -> Iterator[Change]:
        """Yield what the statements change outside, and what the project's functions that they call change."""
        for node in nodes:
            yield from self._change(node)
            if isinstance(node, ast.Call) and depth < _DEEPEST:
                yield from self.of_call(node.func, node.args, node.keywords, depth)

    def of_call(
        self, function: ast.expr, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], depth: int = 0
    ) -> Iterator[Change]:
        """Yield what a call of a function, method or class of the project changes outside."""
        found, receiver = self._function(function)
        if found is None or not isinstance(found.node, Function):
            return
        made = found.node.name == "__init__" and receiver is None  # the object of __init__ is a new one
        parameters = [each.arg for each in (*found.node.args.posonlyargs, *found.node.args.args)]
        values = ([receiver] if receiver is not None else []) + list(args)
        named = {key.arg: key.value for key in keywords if key.arg}
        named |= dict(zip(parameters[made:], values, strict=False))
        inner = found.inner
        there = Body(
            self.project,
            found.module,
            inner,
            self.own | {id(each) for each in inner.all()},
            given={**self.given, **{(id(inner), name): (self, value) for name, value in named.items()}},
            called=self.called,
        )
        outer = tuple(name for name, value in named.items() if self._root_is_outer(value))
        if (found.node, outer) not in self.called:
            self.called.add((found.node, outer))
            yield from there.changes(inner.nodes, depth + 1)

    def _function(self, function: ast.expr) -> tuple[Found | None, ast.expr | None]:
        """Return the function that a call runs, and the object whose method it is."""
        found = self.project.resolve(self.module, self.scope, function)
        if found is not None and isinstance(found.node, ast.ClassDef):
            return member(self.project, found, "__init__"), None
        if found is None and isinstance(function, ast.Attribute):
            kind = self.class_of(function.value)
            found = None if kind is None else member(self.project, kind, function.attr)
            if found is not None and isinstance(found.node, Function) and receiver_of(found.node, found.scope):
                return found, function.value
        if found is None:  # an object that can be called
            kind = self.class_of(function)
            found = None if kind is None else member(self.project, kind, "__call__")
            return found, function
        return found, None

    def _change(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in self.scope.outside:
                yield from self._outer(node, node)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                yield from self._outer(node, node)
            case ast.Call(func=ast.Attribute(value=base, attr=method)):
                if method in OF_LISTS or (method in OF_CONTAINERS and self._is_container(base)):
                    yield from self._outer(base, node)
            case ast.Call(func=ast.Name(id=name), args=[base, *_]) if name in _CHANGING:
                if self.scope.owner(name) is None:
                    yield from self._outer(base, node)

    def _outer(self, target: ast.expr, node: ast.AST) -> Iterator[Change]:
        if self._root_is_outer(target):
            yield Change(node, ast.unparse(target), self.module, self.scope)

    # --- objects -----------------------------------------------------------------------------------------------------

    def _root_is_outer(self, target: ast.expr) -> bool:
        root = self._root(target)
        return root is not None and self._is_outer(root)

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
        given = self.given.get((id(owner), name.id))
        if given is not None:
            return given[0]._root_is_outer(given[1])
        return id(owner) not in self.own

    def class_of(self, node: ast.expr, depth: int = 0) -> Found | None:
        """Return the project's class of an object."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Call):
            found = self.project.resolve(self.module, self.scope, node.func)
            return found if found is not None and isinstance(found.node, ast.ClassDef) else None
        if isinstance(node, ast.Attribute):
            kind = self.class_of(node.value, depth + 1)
            named = () if kind is None else attributes(self.project, kind, node.attr)
            return next((found for each in named if (found := class_named(self.project, each)) is not None), None)
        return self._class_of_name(node.id, depth) if isinstance(node, ast.Name) else None

    def _class_of_name(self, name: str, depth: int) -> Found | None:
        owner = self.scope.owner(name)
        if owner is None:
            return None
        given = self.given.get((id(owner), name))
        if given is not None:
            return given[0].class_of(given[1], depth + 1)
        if name in owner.parameters:
            return self._class_of_parameter(owner, name)
        values = owner.variables.get(name, [])
        only = values[0] if len(values) == 1 else None
        return None if only is None else self._there(owner).class_of(only, depth + 1)

    def _class_of_parameter(self, owner: Scope, name: str) -> Found | None:
        """Return the class around a method for its receiver, for other parameters the annotated one."""
        outer = owner.outer
        if not isinstance(owner.node, Function) or outer is None:
            return None
        if name == receiver_of(owner.node, outer) and isinstance(outer.node, ast.ClassDef) and outer.outer is not None:
            return Found(self.module, outer.outer, outer.node)
        for each in ast.walk(owner.node.args):
            if isinstance(each, ast.arg) and each.arg == name and each.annotation is not None:
                found = self.project.resolve(self.module, outer, each.annotation)
                return found if found is not None and isinstance(found.node, ast.ClassDef) else None
        return None

    def _there(self, owner: Scope) -> Body:
        """Return the same body with the names of a scope around it."""
        return Body(self.project, self.module, owner, self.own, given=self.given)

    def _is_container(self, base: ast.expr, depth: int = 0) -> bool:
        """Return whether a variable or an attribute was made as a list, dictionary or set."""
        if isinstance(base, ast.Attribute) and depth < _DEEPEST:
            kind = self.class_of(base.value)
            said = () if kind is None else attributes(self.project, kind, base.attr)
            return any(_is_said_container(each.scope, each.node) for each in said)
        owner = self.scope.owner(base.id) if isinstance(base, ast.Name) else None
        if owner is None or not isinstance(base, ast.Name):
            return False
        given = self.given.get((id(owner), base.id))
        if given is not None and depth < _DEEPEST:
            return given[0]._is_container(given[1], depth + 1)
        return any(value is not None and _makes_container(owner, value) for value in owner.variables.get(base.id, []))


def _makes_container(owner: Scope, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, _DISPLAYS)
    plain = isinstance(value.func, ast.Name) and value.func.id in _CONTAINERS
    return plain or owner.qualified(value.func).startswith(_MAKING_MODULE)


def _is_said_container(scope: Scope, node: ast.expr) -> bool:
    """Return whether an annotation or a value is one of a container."""
    named = node.value if isinstance(node, ast.Subscript) else node
    return (isinstance(named, ast.Name) and named.id in _CONTAINERS) or _makes_container(scope, node)


def changes_of_function(found: Found, project: Project) -> Iterator[Change]:
    """Yield the changes that a function makes as a body."""
    inner = found.inner
    yield from Body(project, found.module, inner, frozenset(id(each) for each in inner.all())).changes(inner.nodes)


def changes_of_body(node: ast.expr, module: Module, scope: Scope, project: Project) -> Iterator[Change]:
    """Yield the changes that a body makes: the expression that a function with this scope hands to the loop."""
    if isinstance(node, ast.Lambda):
        parameters = frozenset(each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg))
        yield from Body(project, module, scope, parameters=parameters).changes(tuple(own_nodes([node.body])))
    elif isinstance(node, ast.Call) and scope.qualified(node.func) == "functools.partial" and node.args:
        yield from Body(project, module, scope).of_call(node.args[0], node.args[1:], node.keywords)
    else:
        yield from Body(project, module, scope).of_call(node, (), ())


def changes_of_running(found: Found, project: Project) -> Iterator[Change]:
    """Yield the changes of a function that runs as a body, whose parameters may be objects from outside."""
    inner = found.inner
    outside = Body(project, found.module, inner)
    given = {(id(inner), name): (outside, ast.Name(name, ast.Load())) for name in inner.parameters}
    own = frozenset(id(each) for each in inner.all())
    yield from Body(project, found.module, inner, own, given=given).changes(inner.nodes)


def traced_once_message(changed: str, loop: str) -> str:
    """Return the message of NK622; ``changed`` is what the body of the loop does to an outer object."""
    return (
        f"the body of nl.{loop} {changed}, which lives outside of it; the body is traced once, so that "
        "the chip computes something else than a loop of Python, and results that depend on it are not promised"
    )
