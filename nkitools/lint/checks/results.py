"""NK406, NK408, NK621: what a kernel writes to its arguments, keeps to itself, and returns."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Api, Sequence, Tensor, Value
from nkitools.lint.context import Context
from nkitools.lint.expressions import Names
from nkitools.lint.return_types import Arguments, parts
from nkitools.lint.scope import Function, own_nodes

# The calls that write to HBM, and the name of their destination.
_WRITING = {("language", "store"): "dst", ("isa", "dma_copy"): "dst", ("language", "atomic_rmw"): "dst"}
_OWN = "Allocate it with buffer=nl.shared_hbm."


def into_arguments(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Report ``nl.store(out, ...)`` of a legacy kernel, where ``out`` is a parameter that is not said to be mutable."""
    legacy, module, member = parts(function.name)
    name = _WRITING.get((module, member))
    if name is None or not legacy or not _is_jitted(context):
        return
    target = next((each.value for each in node.keywords if each.arg == name), node.args[0] if node.args else None)
    written = _root(target)
    if written in _immutable(context):
        message = f"{function.short}: `{written}` is an input of the kernel and is written to"
        code = "err_cannot_update_immutable_parameter"
        context.find("NK406", node, f"{message} ({code})", tensor=written, code=code)


def lost(context: Context, node: Function, names: Names) -> None:
    """Report a kernel that returns nothing and writes to no argument: what it writes in shared HBM is lost."""
    if not context.kernel or context.around:
        return
    nodes = list(own_nodes(node.body))
    if any(isinstance(each, ast.Return) and not _is_none(each.value) for each in nodes):
        return
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    targets = {_root(each) for call in calls for each in _targets(context, call)}
    if targets - names.keys() or not targets or any(_name(context, call) == "device_print" for call in calls):
        return
    made = [names[each] for each in targets if each is not None]
    if all(isinstance(each, Tensor) and each.memory == "hbm" and each.maker is not None for each in made):
        for each in made:
            maker = each.maker if isinstance(each, Tensor) else None
            if maker is not None and _buffer(context, maker) == "shared_hbm":
                shown = next(name for name, value in names.items() if value is each)
                message = f"the kernel returns nothing: `{shown}`, which it writes, is lost"
                context.find("NK408", maker, message, tensor=shown)


def in_private_memory(context: Context, node: ast.Return, value: Value) -> None:
    """Report ``return out`` of a tensor in nl.hbm or nl.private_hbm, in the modern dialect."""
    if not (context.modern and context.kernel) or context.around:
        return
    for each in value.items or () if isinstance(value, Sequence) else (value,):
        maker = each.maker if isinstance(each, Tensor) else None
        if maker is not None and _buffer(context, maker) in ("hbm", "private_hbm"):
            message = (
                "a result is in private HBM; the documents say that using nl.hbm for results fails to compile, and "
                "AWS's own examples do it"
            )
            context.find("NK621", maker, message, _OWN)


def _is_jitted(context: Context) -> bool:
    """Return whether the function is a kernel of ``nki.jit``, whose inputs are immutable."""
    node = context.scope.node
    if not isinstance(node, Function) or context.around:
        return False
    outer = context.scope.outer or context.scope
    if _is_called(context, node.name):
        return False
    for each in node.decorator_list:
        maker = each.func if isinstance(each, ast.Call) else each
        keywords = [key.arg for key in each.keywords] if isinstance(each, ast.Call) else []
        if outer.qualified(maker).endswith("nki.jit") and not {"mode", "kernel_return", None} & set(keywords):
            return True
    return False


def _is_called(context: Context, name: str) -> bool:
    """Return whether another kernel of the file calls this one, whose arguments are then that kernel's own tensors."""
    for scope in context.module.scope.all():
        node, outer = scope.node, scope.outer
        if outer is None or node is context.scope.node or not isinstance(node, Function):
            continue
        if context.module.is_kernel(node, outer) and any(
            isinstance(each, ast.Name) and each.id == name for each in scope.nodes
        ):
            return True
    return False


def _immutable(context: Context) -> frozenset[str]:
    """Return the parameters that the function never binds anew and that are not annotated as mutable."""
    node = context.scope.node
    assert isinstance(node, Function)
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    plain = (each.arg for each in every if each.annotation is None or "mutable" not in ast.unparse(each.annotation))
    return frozenset(name for name in plain if not context.scope.variables.get(name))


def _root(node: ast.expr | None) -> str | None:
    """Return the name that an expression is a part of: ``out`` of ``out[0:128, i]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _name(context: Context, call: ast.Call) -> str:
    return context.scope.qualified(call.func).rpartition(".")[2]


def _targets(context: Context, call: ast.Call) -> list[ast.expr]:
    """Return the destinations of a call: its ``dst``, and the first argument of an instruction or of nl.store."""
    _, module, _ = parts(context.scope.qualified(call.func))
    if module not in ("isa", "language"):
        return []
    named = [key.value for key in call.keywords if key.arg == "dst"]
    first = call.args[:1] if _name(context, call) in ("store", "dma_copy", "atomic_rmw") and not named else []
    return [each for each in [*named, *first] if _is_in_hbm(context, each)]


def _is_in_hbm(context: Context, node: ast.expr) -> bool:
    """Return whether an expression may be a part of a tensor in HBM: all but what certainly lies on the chip."""
    name = _root(node)
    values = context.scope.variables.get(name, []) if name is not None else []
    makers = [each for each in values if isinstance(each, ast.Call)]
    on_chip = [_buffer(context, each) in ("sbuf", "psum", "") for each in makers]
    return not (makers and len(makers) == len(values) and all(on_chip))


def _buffer(context: Context, node: ast.AST) -> str:
    """Return the memory that a call names for its new tensor; '' if it names none."""
    if not isinstance(node, ast.Call):
        return ""
    given = [key.value for key in node.keywords if key.arg == "buffer"] or node.args[2:3]
    return context.scope.qualified(given[0]).rpartition(".")[2] if given else ""


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


LISTENS = {"call": (into_arguments,), "left": (lost,), "return": (in_private_memory,)}
