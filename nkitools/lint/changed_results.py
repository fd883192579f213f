"""The lines that the newest NKI gives another result, though it takes them as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from nkitools.facts import versions
from nkitools.lint.module import Module
from nkitools.lint.rewriting import line_after
from nkitools.lint.scope import Scope

_TOPK = "nki.isa.topk"
_OBJECT = "nki.language.NKIObject"


class Changed(NamedTuple):
    """A place whose result is another one: what has changed there, and what to write for the older result."""

    node: ast.Call | ast.ClassDef
    message: str
    remedy: str


def changed_results(module: Module) -> Iterator[Changed]:
    """Yield the calls of nisa.topk without an order, and classes whose objects are compared without an ``__eq__``."""
    scopes = [scope for scope in module.scope.all() if getattr(scope.node, "name", "") != "__eq__"]
    compares = any(_compares_objects(node) for scope in scopes for node in scope.nodes)
    for scope in module.scope.all():
        for node in scope.nodes:
            if isinstance(node, ast.Call) and scope.qualified(node.func) == _TOPK and not _is_ordered(node):
                yield Changed(node, _meaning("snake_topk"), _ordered(module, node))
            elif isinstance(node, ast.ClassDef) and compares and _is_plain_object(scope, node):
                message = (
                    f"`==` and `!=` of `{node.name}` ask for identity in a traced kernel, not for equal attributes"
                )
                remedy = f"Write `@dataclass` above `class {node.name}`, or give the class an `__eq__`."
                yield Changed(node, message, remedy)


def _meaning(name: str) -> str:
    row = versions.by_full_name()[f"{versions.MODERN}.%{name}"]
    return row.instead.rstrip(".")


def _is_ordered(node: ast.Call) -> bool:
    """Return whether a call of nisa.topk says the order, or may say it in ``**options``."""
    order = 4  # the position of `sorted`
    return len(node.args) > order or any(each.arg in (None, "sorted") for each in node.keywords)


def _ordered(module: Module, node: ast.Call) -> str:
    edit = module.source.with_argument(node, "sorted=True")
    written = line_after(module.text, [edit], edit.line)
    return f"Write `{written}`, where a kernel needs the order."


def _is_plain_object(scope: Scope, node: ast.ClassDef) -> bool:
    """Return whether objects of a class are compared as those of nl.NKIObject are."""
    decorators = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    names = {scope.qualified(each).rpartition(".")[2] for each in decorators}
    own = any(isinstance(each, ast.FunctionDef) and each.name == "__eq__" for each in node.body)
    return "dataclass" not in names and not own and any(scope.qualified(base) == _OBJECT for base in node.bases)


def _compares_objects(node: ast.AST) -> bool:
    """Return whether a comparison asks for equality, and no operand is a literal."""
    if not isinstance(node, ast.Compare):
        return False
    asks = any(isinstance(each, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for each in node.ops)
    return asks and not any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))
