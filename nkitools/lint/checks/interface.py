"""NK607, NK608, NK609, NK615, NK618: names that NKI does not have, calls that do not fit, and what is deprecated."""

from __future__ import annotations

import ast

from nkitools.facts import versions
from nkitools.lint.abstract_values import Api, Constant, Mask, Register, Tensor, Value
from nkitools.lint.context import Context
from nkitools.lint.return_types import Arguments, parts
from nkitools.rules.catalogue import removed_memory

_SIMULATED = ("divide", "fmod", "mod")
_MEMORIES = frozenset({"hbm", "private_hbm", "psum", "sbuf", "shared_hbm"})


def called(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Check that NKI has the called function, and that the arguments fit the function."""
    if _named(context, node.func, function) or context.interface is None:
        return
    wrong = context.interface.wrong_call(function.name, node)
    if wrong is not None:
        context.find(wrong[0], node, *wrong[1:])
        return
    legacy, module, member = parts(function.name)
    if not legacy and module == "isa":
        for role, value in given.named.items():
            if isinstance(value, Api) and parts(value.name) == (False, "language", "divide"):
                at = next(each.value for each in node.keywords if each.arg == role)
                reason = "division is not available as a hardware instruction"
                message = f"{function.short}: `{role}`=nl.divide does not compile for the chip: {reason}"
                context.find("NK615", at, message, "", "error")
    if not legacy and module == "language" and member in _SIMULATED:
        message = f"nl.{member} works in simulation only; it does not compile for the chip"
        severity = "error" if member == "divide" else ""
        context.find("NK615", node, message, "", severity, instruction=member)


def named(context: Context, node: ast.Attribute, function: Api) -> None:
    """Check a name of NKI that is not called."""
    _named(context, node, function)


def _named(context: Context, node: ast.expr, function: Api) -> bool:
    notice = versions.notice_of(function.name, context.language)
    if notice is not None:
        context.find("NK618", node, notice.message, notice.remedy, notice.severity)
    missing = None if context.interface is None else context.interface.missing(function.name)
    if missing is not None and context.interface is not None:
        rule, message, remedy = missing
        meant = context.interface.meant(function.name, *_call_of(context, node)) if rule == "NK607" else ""
        context.find(rule, node, message, meant or remedy)
    return missing is not None


def _call_of(context: Context, name: ast.expr) -> tuple[ast.Call | None, bool]:
    """Return the call whose function is a name, and whether the call is a statement."""
    nodes = list(context.scope.nodes)
    call = next((each for each in nodes if isinstance(each, ast.Call) and each.func is name), None)
    return call, call is not None and any(isinstance(each, ast.Expr) and each.value is call for each in nodes)


def memory(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """``buffer="sbuf"`` of the modern dialect."""
    if function.legacy or context.interface is None:
        return
    value = given.named.get("buffer") or context.interface.bound(function.name, given).get("buffer")
    text = value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""
    if text in _MEMORIES:
        place = next((each for each in node.args if isinstance(each, ast.Constant) and each.value == text), node)
        at = next((each.value for each in node.keywords if each.arg == "buffer"), place)
        context.find("NK608", at, *removed_memory(text))


def operand(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """``nl.load(mask)``, and nl.store with its arguments in the wrong order."""
    _, module, member = parts(function.name)
    if module != "language" or member not in ("load", "store"):
        return
    first = given.get("src" if member == "load" else "dst", 0)
    if isinstance(first, Mask):
        message = f"{function.short}: the first argument must be a tensor, it is a mask"
        context.find("NK609", node, message, _form(member))
    elif member == "store" and isinstance(first, Tensor) and first.on_chip:
        value = given.get("value", 1)
        if isinstance(value, Tensor) and value.memory == "hbm":
            context.find("NK201", node, "nl.store writes into its first argument, which is on chip here", _form(member))


def _form(member: str) -> str:
    return f"The call form is nl.{'load(x[...], mask=...)' if member == 'load' else 'store(dst, value)'}."


def depended(context: Context, node: ast.Call, owner: ast.expr, method: str, *given: Value) -> None:
    """``instruction.depends_on(producer, kind=...)``: the kind, where the NKI version has it."""
    names = {each.arg for each in node.keywords}
    if method != "depends_on" or not context.modern or None in names:
        return
    rows = versions.by_full_name()
    row = rows["nki.isa.NkiInstruction.depends_on(kind)"]
    notice = versions.notice(rows["nki.isa.depends_on without kind="], context.language)
    if "kind" not in names and notice is not None:
        context.find("NK618", node, notice.message, notice.remedy, notice.severity)
    elif "kind" in names and not row.is_in(context.language):
        context.find("NK609", node, f"depends_on: the argument `kind` {row.absence(context.language)}", row.instead)


def steered(context: Context, node: ast.expr, value: Value) -> None:
    """``while register:``"""
    if not isinstance(value, Register) or not context.modern or node is not context.loop_test:
        return
    row = versions.by_full_name()["nki.while register:"]
    notice = versions.notice(row, context.language)
    if not row.is_in(context.language):
        context.find("NK608", node, f"{row.shown} {row.absence(context.language)}", row.instead)
    elif notice is not None:
        context.find("NK618", node, notice.message, notice.remedy, notice.severity)


LISTENS = {"call": (called, memory, operand), "name": (named,), "truth": (steered,), "method": (depended,)}
