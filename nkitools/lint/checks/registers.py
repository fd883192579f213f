"""NK601, NK602, NK609, NK621: registers in Python, instructions that write a loop's counter, nl.no_reorder."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Api, Constant, Container, Register, Scalar, Sequence, Tensor, Value
from nkitools.lint.checks.counters import written
from nkitools.lint.context import Context
from nkitools.lint.return_types import Arguments, parts

_STEER = "Steer loops with nl.fori_loop and nl.while_loop, addresses with scalar_offset= or nl.ds."
_MOVE = "Put the `with nl.no_reorder():` into the loop's body."
_WRITING = frozenset({"register_load", "register_move"})


def begun(context: Context, node: ast.For, counter: Value) -> None:
    """Report a loop over nl.dynamic_range inside nl.no_reorder."""
    if isinstance(counter, Register) and counter.counter and context.ordered:
        context.find("NK601", node.iter, "a loop on the device stands inside nl.no_reorder()", _MOVE)


def called(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """nisa.register_move and register_load into a counter; nl.fori_loop and nl.while_loop in nl.no_reorder."""
    _, module, member = parts(function.name)
    if module == "isa" and member in _WRITING:
        dst = given.get("dst", 0)
        if isinstance(dst, Register) and dst.counter:
            written(context, node, ast.unparse(node.args[0]) if node.args else "dst")
    init = given.get("init", 0)
    usable = isinstance(init, Scalar) and init.dtype != "int64" and not init.compared
    if module == "language" and member == "while_loop" and usable:
        remedy = "Keep the condition in a register: nisa.register_alloc and nisa.register_load."
        context.find("NK621", node, "init is a scalar; the documents have conditions in registers only", remedy)
    if module == "language" and member in ("fori_loop", "while_loop") and context.ordered:
        context.find("NK601", node, "a loop on the device stands inside nl.no_reorder()", _MOVE)


def entered(context: Context, node: ast.With) -> None:
    """``with nl.no_reorder():``"""
    context.ordered += _orders(context, node)


def left(context: Context, node: ast.With) -> None:
    """Its end."""
    context.ordered -= _orders(context, node)


def _orders(context: Context, node: ast.With) -> int:
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    names = [context.scope.qualified(each.func) for each in calls]
    return sum(parts(name)[1:] == ("language", "no_reorder") for name in names)


def compared(context: Context, node: ast.Compare, *values: Value) -> None:
    """``if i == 0`` of a counter: there is no value to compare when the kernel is compiled."""
    signs = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    none = any(isinstance(each, ast.Constant) and each.value is None for each in (node.left, *node.comparators))
    if not none and any(isinstance(each, Register) for each in values) and isinstance(node.ops[0], signs):
        context.find(_rule(context), node, f"`{ast.unparse(node)}` compares a register in a Python expression", _STEER)


def returned(context: Context, node: ast.Return, value: Value) -> None:
    """Check that the body of a while_loop returns its next condition, a register."""
    something = isinstance(value, Constant) and value.value is not None
    wrong = something or isinstance(value, (Tensor, Sequence, Container))
    if context.loop_body == "while_loop" and wrong:
        message = "the body of nl.while_loop returns something else than the register that is its next condition"
        remedy = "Return the register; write what the loop computes into a tensor that is created in front of it."
        context.find("NK609", node, message, remedy)


def number(context: Context, node: ast.expr, value: Value) -> None:
    """``range(register)``, ``int(register)``."""
    if isinstance(value, (Register, Scalar)):
        kind = "register" if isinstance(value, Register) else "scalar of the device"
        context.find(_rule(context), node, f"`{ast.unparse(node)}`, a {kind}, is used as a Python number", _STEER)


def _rule(context: Context) -> str:
    """Return the rule of registers in Python: the traced kernel fails when Python asks for their value."""
    return "NK602" if context.language.traced else "NK601"


LISTENS = {
    "loop": (begun,),
    "call": (called,),
    "enter": (entered,),
    "exit": (left,),
    "compare": (compared,),
    "number": (number,),
    "return": (returned,),
}
