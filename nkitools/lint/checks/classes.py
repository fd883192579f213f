"""NK601: classes that kernels use and that are not derived from nl.NKIObject, where the compiler parses kernels."""

from __future__ import annotations

import ast
import sys
from enum import Enum

from nkitools.lint.context import Context
from nkitools.lint.project import Found
from nkitools.lint.scope import Function

_REMEDY = "Derive it from nl.NKIObject and from nothing else; @dataclass may stay."
_DEEPEST = 8  # classes above classes that are followed


class Kind(Enum):
    """The kind of a class, as the NKI compiler sees it."""

    NKI = "derived from NKIObject"
    ENUM = "an enumeration"
    OTHER = "something else"
    UNKNOWN = "not to be seen"


def function(context: Context, node: Function) -> None:
    """Check the classes that a function defines or makes objects of, and those in the annotations of a kernel."""
    if not context.modern or context.language.traced:
        return
    raised = {each.exc for each in context.scope.nodes if isinstance(each, ast.Raise)}
    for each in context.scope.nodes:
        if isinstance(each, ast.ClassDef):
            _look_at(context, Found(context.module, context.scope, each))
        elif isinstance(each, ast.Call) and each not in raised:
            _made(context, each.func)
    for annotation in (each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)):
        if context.kernel and annotation is not None:
            _made(context, annotation)


def _made(context: Context, node: ast.expr) -> None:
    found = context.resolve(node)
    if found is not None and isinstance(found.node, ast.ClassDef):
        _look_at(context, found)


def _look_at(context: Context, found: Found) -> None:
    node = found.node
    assert isinstance(node, ast.ClassDef)
    kinds = [_kind_of_base(context, found, base) for base in node.bases]
    there = context.at(found)
    if Kind.NKI in kinds and len(kinds) > 1:
        there.find("NK601", node, f"class {node.name} has other bases beside NKIObject; it may have none", _REMEDY)
    elif Kind.OTHER in kinds or not kinds:
        there.find("NK601", node, f"class {node.name}, which a kernel uses, is not derived from NKIObject", _REMEDY)


def _kind_of_base(context: Context, found: Found, base: ast.expr, depth: int = 0) -> Kind:
    dotted = found.scope.qualified(base)
    if dotted.rpartition(".")[2] == "NKIObject":
        return Kind.NKI
    if dotted == "enum.Enum":
        return Kind.ENUM
    above = context.project.resolve(found.module, found.scope, base)
    if depth > _DEEPEST:
        return Kind.UNKNOWN
    if above is not None and isinstance(above.node, ast.ClassDef):
        kinds = [_kind_of_base(context, above, each, depth + 1) for each in above.node.bases]
        return next((kind for kind in (Kind.NKI, Kind.ENUM, Kind.UNKNOWN) if kind in kinds), Kind.OTHER)
    builtin = isinstance(base, ast.Name) and not dotted and found.scope.owner(base.id) is None
    known = builtin or dotted.partition(".")[0] in sys.stdlib_module_names
    return Kind.OTHER if known and not dotted.startswith("enum.") else Kind.UNKNOWN


LISTENS = {"function": (function,)}
