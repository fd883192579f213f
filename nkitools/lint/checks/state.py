"""NK617: kernels that depend on mutable state outside of them; the compiler keeps what it made for the arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.lint.context import Context
from nkitools.lint.scope import Function, Scope

_REMEDY = "Pass it to the kernel as an argument: a number, a text, a tuple, an object of an NKIObject class."
_CHANGING = frozenset({
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "update"
})  # fmt: skip
_WRITE_ONLY = frozenset({"add", "append", "clear", "discard", "extend", "insert", "remove", "update"})
_MAKERS = frozenset({"collections.Counter", "collections.OrderedDict", "collections.defaultdict", "collections.deque"})
# What differs from run to run: the clock, the environment, random numbers.
_OUTSIDE = ("datetime.datetime.now", "numpy.random.", "os.environ", "os.getenv", "random.", "time.", "uuid.")

_OUTSIDE_IN = tuple(each for each in _OUTSIDE if each.endswith("."))
_SEEDED = frozenset({"Generator", "RandomState", "SeedSequence", "default_rng"})  # are given what they start from


def function(context: Context, node: Function) -> None:
    """Report the outer variables that a function changes, and those that it reads while other code changes them."""
    if not context.modern:
        return
    written = set(_only_written(context.scope))
    for each in context.scope.nodes:
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each not in written:
            _read(context, each)
        elif isinstance(each, (ast.Attribute, ast.Name)):
            _outside(context, each)
        if isinstance(each, ast.Global):
            _rebound(context, each)
    for each in () if context.language.traced else written:
        if _mutable(context, each) is not None:
            message = (
                f"`{each.id}`, which lives outside of the kernel, is changed by it: that happens when the kernel is "
                "compiled, and not at each of its calls"
            )
            context.find("NK616", each, message, "Return what the kernel has to say.")


def _outside(context: Context, node: ast.Attribute | ast.Name) -> None:
    dotted = context.scope.qualified(node)
    if (
        dotted.startswith(_OUTSIDE)
        and (dotted in _OUTSIDE or dotted.startswith(_OUTSIDE_IN))
        and dotted.rpartition(".")[2] not in _SEEDED
    ):
        context.find("NK617", node, f"the kernel depends on {dotted}, which changes from call to call", _REMEDY)


def _rebound(context: Context, node: ast.Global) -> None:
    for name in node.names:
        if _stores(context.scope, name):
            context.find("NK617", node, f"the kernel assigns to `{name}`, a variable of its file", _REMEDY)


def _read(context: Context, node: ast.Name) -> None:
    owner = context.scope.owner(node.id)
    if owner is None or owner is context.scope or node.id in owner.definitions or node.id in owner.parameters:
        return
    if _is_kernel_code(context, owner):
        return
    if node.id in context.scope.outside and _stores(context.scope, node.id):
        return  # said where the kernel declares it
    changed = _changed(context, owner, node.id)
    if changed is not None:
        message = (
            f"the kernel depends on `{node.id}`, a variable outside of it that line {changed} changes; the compiler "
            "keeps what it made for the same arguments"
        )
        context.find("NK617", node, message, _REMEDY)


def _changed(context: Context, owner: Scope, name: str) -> int | None:
    """Return the line of a function that rebinds an outer variable or changes the value of one."""
    is_mutable = _holds_mutable(owner, name)
    for scope in owner.all() if is_mutable or name in owner.declared else ():
        inside = scope is not owner
        if inside and name in scope.outside:
            stores = _stores(scope, name)
            if stores:
                return stores[0].lineno
        # Only the body of a function goes on after the kernel in it is defined.
        if not is_mutable or (not inside and not isinstance(owner.node, Function)):
            continue
        if inside and scope.owner(name) is not owner:
            continue
        lines = [line for line in _changing_lines(scope, name) if inside or line > _line(context.scope.node)]
        if lines:
            return lines[0]
    return None


def _line(node: ast.AST) -> int:
    return getattr(node, "end_lineno", None) or 0


def _changing_lines(scope: Scope, name: str) -> Iterator[int]:
    for each in scope.nodes:
        match each:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=method)) if found == name:
                if method in _CHANGING:
                    yield each.lineno
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Store() | ast.Del()) if found == name:
                yield each.lineno
            case ast.AugAssign(target=ast.Name(id=found)) if found == name:
                yield each.lineno


def _holds_mutable(owner: Scope, name: str) -> bool:
    """Return whether a variable was made as a list, dictionary or set."""
    return any(value is not None and _makes_mutable(owner, value) for value in owner.variables.get(name, []))


def _makes_mutable(owner: Scope, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        plain = isinstance(value.func, ast.Name) and value.func.id in ("dict", "list", "set", "bytearray")
        return plain or owner.qualified(value.func) in _MAKERS
    return isinstance(value, (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp))


def _mutable(context: Context, node: ast.Name) -> Scope | None:
    """Return the scope outside of the kernel that holds a mutable variable, if it does."""
    owner = context.scope.owner(node.id)
    outer = owner is not None and owner is not context.scope and not _is_kernel_code(context, owner)
    return owner if outer and owner is not None and _holds_mutable(owner, node.id) else None


def _is_kernel_code(context: Context, owner: Scope) -> bool:
    """Return whether a variable belongs to an enclosing function that is kernel code, too."""
    return owner.node in context.around


def _only_written(scope: Scope) -> Iterator[ast.Name]:
    """Yield the names whose values a function only changes: ``seen.append(x)``, ``seen[i] = x``."""
    for each in scope.nodes:
        match each:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name() as name, attr=method))):
                if method in _WRITE_ONLY:
                    yield name
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                        yield target.value


def _stores(scope: Scope, name: str) -> list[ast.Name]:
    """Return the nodes at which a scope binds a name."""
    names = (each for each in scope.nodes if isinstance(each, ast.Name))
    return [each for each in names if each.id == name and isinstance(each.ctx, ast.Store)]


LISTENS = {"function": (function,)}
