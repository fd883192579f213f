"""NK201, NK609: what the arguments of a call are, and in which memory they lie, where the source shows it.

A run says the same and stops there, as it cannot know what was meant; here the rest of the kernel is looked at, too.
"""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Api, Constant, Number, Tensor, Value, is_float, whole
from nkitools.lint.context import Context
from nkitools.lint.return_types import Arguments, parts

_OPERATORS = frozenset({"cmp_op", "comp_op0", "comp_op1", "op", "op0", "op1", "reduce_op"})
_TENSORS = frozenset({
    "data", "data0", "data1", "data2", "dst", "moving", "on_true", "on_true_tile", "predicate", "reduce_res", "src",
    "stationary", "vals"
})  # fmt: skip
_NEVER_NUMBERS = frozenset({"data", "dst", "moving", "stationary"})  # the others may be numbers somewhere
# By instruction, the operands that lie in one memory only: the Tensor Engine reads SBUF and writes PSUM, and a DMA does
# not reach PSUM.
_PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "isa.nc_matmul": {"dst": ("psum",), "stationary": ("sbuf",), "moving": ("sbuf",)},
    "isa.dma_copy": {"dst": ("hbm", "sbuf"), "src": ("hbm", "sbuf")},
    "language.store": {"value": ("hbm", "sbuf")},
}
_BRING = {
    "dst": "Allocate it with buffer=nl.psum.",
    "stationary": "Copy it to SBUF first, nisa.tensor_copy.",
    "moving": "Copy it to SBUF first, nisa.tensor_copy.",
}
_BY_SBUF = "Copy it through SBUF: nisa.tensor_copy between PSUM and SBUF, nisa.dma_copy between SBUF and HBM."


def kinds(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Report a tensor in the place of an operator, and an operator in the place of a tensor."""
    _, module, member = parts(function.name)
    if module not in ("isa", "language") or "register" in member or context.interface is None:
        return
    for name, value in context.interface.bound(function.name, given).items():
        wrong = _wrong(name, value)
        if wrong is not None:
            message = f"{function.short}: argument `{name}` must be {wrong}"
            context.find("NK609", node, message, context.interface.form(function.name))
            return  # who swaps two arguments has done one thing


def _wrong(name: str, value: Value) -> str | None:
    if name in _OPERATORS and isinstance(value, (Tensor, Number, Constant)):
        nothing = isinstance(value, Constant) and value.value is None
        return None if nothing else f"an operator such as nl.add, it is {_told(value)}"
    text = isinstance(value, Constant) and isinstance(value.value, str)
    number = isinstance(value, Number) or whole(value) is not None or is_float(value)
    if name in _TENSORS and (isinstance(value, Api) or text or (number and name in _NEVER_NUMBERS)):
        return f"a tensor, it is {_told(value)}"
    return None


def _told(value: Value) -> str:
    match value:
        case Tensor():
            return "a tensor"
        case Api():
            return value.short
        case Constant():
            return repr(value.value)
    return "a number"


def places(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Operands that are made in a memory which the instruction does not reach."""
    legacy, module, member = parts(function.name)
    if legacy or context.interface is None:
        return
    bound = context.interface.bound(function.name, given)
    for name, memories in _PLACES.get(f"{module}.{member}", {}).items():
        value = bound.get(name)
        if isinstance(value, Tensor) and value.memory and value.memory not in memories:
            names = tuple(each.upper() for each in memories)
            message = f"{function.short}: `{name}` must be in {' or '.join(names)}, it is in {value.memory.upper()}"
            remedy, where = _BRING[name] if member == "nc_matmul" else _BY_SBUF, value.memory.upper()
            context.find(
                "NK201", node, message, remedy, instruction=member, argument=name, memories=names, memory=where
            )
            return


LISTENS = {"call": (kinds, places)}
