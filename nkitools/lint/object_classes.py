"""The classes of the project's objects, and what their attributes are, as far as the source shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nkitools.lint.project import Found, Project
from nkitools.lint.scope import Function, Scope

_DEEPEST = 8  # classes above a class that are looked at
_UNBOUND = frozenset({"classmethod", "staticmethod"})


@dataclass(frozen=True)
class Attribute:
    """One statement about an attribute of a class: its annotation or a value that it gets."""

    found: Found  # the class
    scope: Scope  # where the names of the expression are looked up
    node: ast.expr


def member(project: Project, found: Found, name: str, depth: int = 0) -> Found | None:
    """Return a method of a class or of the project's classes above it."""
    own = found.member(name)
    if own is not None or depth > _DEEPEST:
        return own
    for above in _above(project, found):
        inherited = member(project, above, name, depth + 1)
        if inherited is not None:
            return inherited
    return None


def receiver_of(node: Function, scope: Scope) -> str:
    """Return the parameter of a method that stands for its object; '' if there is none."""
    parameters = [*node.args.posonlyargs, *node.args.args]
    unbound = any(isinstance(each, ast.Name) and each.id in _UNBOUND for each in node.decorator_list)
    return parameters[0].arg if isinstance(scope.node, ast.ClassDef) and parameters and not unbound else ""


def attributes(project: Project, found: Found, name: str, depth: int = 0) -> Iterator[Attribute]:
    """Yield what a class and the project's classes above it say about an attribute."""
    inner = found.inner
    for node in inner.nodes:
        match node:
            case ast.AnnAssign(target=ast.Name(id=target), annotation=annotation) if target == name:
                yield Attribute(found, inner, annotation)
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield Attribute(found, inner, value)
    for method, scope in inner.scopes.items():
        receiver = receiver_of(method, inner) if isinstance(method, Function) else ""
        for node in scope.nodes if receiver else ():
            yield from (Attribute(found, scope, value) for value in _set(node, receiver, name))
    if depth < _DEEPEST:
        for above in _above(project, found):
            yield from attributes(project, above, name, depth + 1)


def class_named(project: Project, attribute: Attribute) -> Found | None:
    """Return the class that an attribute's annotation names, or that its value is made of."""
    node = attribute.node.func if isinstance(attribute.node, ast.Call) else attribute.node
    found = project.resolve(attribute.found.module, attribute.scope, node)
    return found if found is not None and isinstance(found.node, ast.ClassDef) else None


def _set(node: ast.AST, receiver: str, name: str) -> Iterator[ast.expr]:
    """Yield the value of ``self.name = value`` and the annotation of ``self.name: annotation``."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        match target:
            case ast.Attribute(value=ast.Name(id=base), attr=attribute) if (base, attribute) == (receiver, name):
                if isinstance(node, ast.Assign):
                    yield node.value
                elif isinstance(node, ast.AnnAssign):
                    yield node.annotation


def _above(project: Project, found: Found) -> Iterator[Found]:
    for base in found.node.bases if isinstance(found.node, ast.ClassDef) else ():
        above = project.resolve(found.module, found.scope, base)
        if above is not None and isinstance(above.node, ast.ClassDef) and above.node is not found.node:
            yield above
