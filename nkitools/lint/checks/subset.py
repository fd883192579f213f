"""NK601, NK616: the Python that NKI documents as outside of its subset, and Python that no NKI page mentions.

The language guide lists the values (None, truth values, 32-bit integers and floats, texts, tensors) and containers
(tuples, lists, dictionaries with texts as keys, classes derived from NKIObject). The migration guide lists what the
compiler refuses. Undocumented Python is a hint, but for what the compiler of nki 0.6.0 refused in public kernels. It
reads the source of every function that a kernel names, also what no call reaches. Where Python runs the kernel, all of
it is allowed, and only lists for arguments stay out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from nkitools.lint.abstract_values import Api, Constant, Number, Sequence, Value
from nkitools.lint.context import Context
from nkitools.lint.return_types import parts
from nkitools.lint.scope import Function

_CONTAINERS = "Use a list, a tuple, or a dictionary whose keys are texts."
_DOCUMENTED = "Write it with what the NKI Language Guide lists, or compile the kernel to see that it is accepted."
_REFUSED_CALLS = frozenset({"bytearray", "bytes", "complex", "frozenset", "memoryview", "set"})
_REFUSED_MODULES = frozenset({"array", "collections"})
# Builtins that neither the guide shows nor AWS's kernels use.
_UNKNOWN_CALLS = frozenset({
    "all", "any", "breakpoint", "callable", "compile", "delattr", "dir", "enumerate", "eval", "exec", "filter",
    "format", "globals", "hasattr", "hash", "id", "iter", "locals", "map", "next", "open", "repr", "reversed",
    "setattr", "sorted", "sum", "super", "type", "vars", "zip"
})  # fmt: skip
_UNKNOWN: dict[type[ast.AST], str] = {
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.Delete: "del",
    ast.GeneratorExp: "a generator expression",
    ast.Lambda: "a lambda expression",
    ast.ListComp: "a list comprehension",
    ast.DictComp: "a dictionary comprehension",
    ast.Match: "match",
    ast.NamedExpr: "an assignment expression",
    ast.Nonlocal: "nonlocal",
    ast.Try: "try",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
}
_IMPORT = ("an import inside of a function", "Import at the top of the file.")
# What the compiler of nki 0.6.0 refuses, and what to write instead.
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Import: _IMPORT,
    ast.ImportFrom: _IMPORT,
    ast.Raise: ("`raise`", "Write an assert, or check on the host before the launch."),
}


def function(context: Context, node: Function) -> None:
    """Everything that can be said of a function without knowing what its names stand for."""
    if not context.modern:
        return
    _lists_as_arguments(context, node)
    if context.language.traced:
        return
    _signature(context, node)
    for each in context.scope.nodes:
        if type(each) in _UNKNOWN:
            _undocumented(context, each, _UNKNOWN[type(each)])
        elif type(each) in _REFUSED:
            what, remedy = _REFUSED[type(each)]
            message = f"{what} in code that the kernel names: the compiler of NKI {context.language.shown} refuses it"
            context.find("NK601", each, message, remedy)
        found = _BY_NODE.get(type(each))
        if found is not None:
            found(context, each)


def _undocumented(context: Context, node: ast.AST, what: str) -> None:
    context.find("NK616", node, f"{what} is not documented as part of NKI", _DOCUMENTED)


def _signature(context: Context, node: Function) -> None:
    if isinstance(node, ast.AsyncFunctionDef):
        _undocumented(context, node, "async def")
    if node.args.kwonlyargs:
        rule = "NK601" if context.kernel else "NK616"
        first = node.args.kwonlyargs[0]
        context.find(
            rule,
            first,
            f"`{first.arg}` is a keyword-only parameter, which the compiler does not support in a kernel's signature",
            "Take the `*` out of the signature, and move parameters with defaults to its end.",
        )
    for each in (node.args.vararg, node.args.kwarg):
        if each is not None:
            _undocumented(context, each, f"a parameter that takes any number of arguments (`{each.arg}`)")


def _lists_as_arguments(context: Context, node: Function) -> None:
    for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
        if context.kernel and isinstance(default, (ast.List, ast.ListComp)):
            message = "the default of a kernel's parameter is a list; kernels take no lists as arguments"
            context.find("NK601", default, message, "Make it a tuple.")


def _set(context: Context, node: ast.AST) -> None:
    context.find("NK601", node, "a set is no container of NKI", _CONTAINERS)


def _constant(context: Context, node: ast.AST) -> None:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, (bytes, complex)):
        context.find("NK601", node, f"{value!r} ({type(value).__name__}) is no value of NKI")
    elif type(value) is int and not -(1 << 31) <= value < 1 << 32:
        _undocumented(context, node, f"{value}, an integer of more than 32 bits,")


def _identity(context: Context, node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    sides = [node.left, *node.comparators]
    for sign, left, right in zip(node.ops, sides, sides[1:], strict=False):
        if not isinstance(sign, (ast.Is, ast.IsNot)):
            continue
        equal = "==" if isinstance(sign, ast.Is) else "!="
        # AWS's production kernels ask `is None`, and a kernel of their tests `a is b`.
        literal = any(isinstance(each, ast.Constant) and each.value is not None for each in (left, right))
        spelt = "is" if isinstance(sign, ast.Is) else "is not"
        context.find(
            "NK601" if literal else "NK616",
            node,
            f"`{ast.unparse(node)}` asks for identity; the migration guide says that the compiler refuses `{spelt}`"
            + ("" if literal else ", though AWS's own kernels have it"),
            f"Write {equal}.",
        )


def _with(context: Context, node: ast.AST) -> None:
    assert isinstance(node, ast.With)
    for item in node.items:
        called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
        if parts(context.scope.qualified(called))[1:] != ("language", "no_reorder"):
            _undocumented(context, node, f"`with {ast.unparse(item.context_expr)}`")


def _loop(context: Context, node: ast.AST) -> None:
    if getattr(node, "orelse", None):
        _undocumented(context, node, "the `else` of a loop")


def _call(context: Context, node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name and context.scope.owner(name) is None:
        if name in _REFUSED_CALLS:
            context.find("NK601", node, f"{name}(...) makes no value of NKI", _CONTAINERS)
        elif name in _UNKNOWN_CALLS:
            _undocumented(context, node, f"{name}(...)")
    _nested(context, node)
    dotted = context.scope.qualified(node.func)
    if dotted.partition(".")[0] in _REFUSED_MODULES and "." in dotted:
        context.find("NK601", node, f"{dotted}(...) makes no value of NKI", _CONTAINERS)
    if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
        _undocumented(context, node, "a call with * or **")


def _nested(context: Context, node: ast.Call) -> None:
    """Report the call of a function that is defined inside of kernel code, also by another name of it."""
    called = context.scope.definition(node.func)
    if called is not None and called.outer is not None and called.outer.node in (*context.around, context.scope.node):
        context.find(
            "NK601",
            node,
            f"`{ast.unparse(node.func)}` is defined inside of another function, and called; the compiler takes such a "
            "function only as the body of nl.fori_loop or nl.while_loop",
            "Define it at the top of the file, with what it needs as parameters, or write its lines here.",
        )


_BY_NODE: dict[type[ast.AST], Callable[[Context, ast.AST], None]] = {
    ast.Set: _set,
    ast.SetComp: _set,
    ast.Constant: _constant,
    ast.Compare: _identity,
    ast.With: _with,
    ast.For: _loop,
    ast.While: _loop,
    ast.Call: _call,
}


def key(context: Context, node: ast.expr, value: Value) -> None:
    """Report a dictionary key that is no text."""
    text = isinstance(value, Constant) and isinstance(value.value, str)
    known = isinstance(value, (Constant, Number, Api)) or (isinstance(value, Sequence) and value.kind == "tuple")
    if known and not text and context.modern and not context.language.traced:
        shown = ast.unparse(node)
        message = f"the key `{shown}` of a dictionary is no text; NKI has only those"
        context.find("NK601", node, message, f"Use a text for a key: str({shown}).")


LISTENS = {"function": (function,), "key": (key,)}
