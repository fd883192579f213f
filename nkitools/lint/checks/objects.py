"""NK110, NK201, NK202, NK203, NK306, NK601, NK609: objects of NKI as what they are not, and tiles that fit nowhere."""

from __future__ import annotations

import ast
import re
from math import prod

from nkitools.facts.generations import TABLES
from nkitools.facts.invented_names import meanings, shape_remedy
from nkitools.lint.abstract_values import Api, Tensor, Value
from nkitools.lint.context import Context
from nkitools.lint.return_types import CREATING, Arguments, called, parts

_DTYPE = re.compile(r"(u?int|float|bfloat|tfloat)\d+\w*|bool_?")
_MEMORIES = frozenset({"hbm", "private_hbm", "psum", "sbuf", "shared_hbm"})
_RANGES = ("affine_range", "sequential_range", "static_range")
_SIZES = "nl.tile_size holds the sizes of tiles"
_PMAX = "Write nl.tile_size.pmax, the partitions of a tile."
# Instructions of engines that compute: their tensors lie on chip.
_COMPUTING = frozenset({
    "activation", "activation_reduce", "nc_matmul", "nc_transpose", "reciprocal", "tensor_copy", "tensor_reduce",
    "tensor_scalar", "tensor_tensor", "tensor_tensor_scan"
})  # fmt: skip
_OPERANDS = ("dst", "data", "data1", "data2", "src", "stationary", "moving")
_MATHEMATICAL = ("tensor_scalar", "tensor_tensor", "tensor_reduce")  # whose operators are no activation functions
_BOTH = frozenset({"abs", "relu", "rsqrt", "square"})  # which are operators, too


def used(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """``nl.sbuf(...)``, ``nl.float32(x)``, ``nl.tile_size(128)``, ``with nl.affine_range(2)``, ``nl.ones(128, 64)``."""
    legacy, module, member = parts(function.name)
    if module != "language":
        return
    shown = ast.unparse(node.func)
    if member in _MEMORIES:
        arguments = [ast.unparse(each) for each in node.args] + ["...", "..."]
        remedy = f"Write `nl.ndarray({arguments[0]}, dtype={arguments[1]}, buffer={shown})`."
        context.find("NK609", node, f"{shown} is a memory, and no function", remedy)
    elif member == "tile_size":
        context.find("NK609", node, f"{_SIZES}, and is no function", _PMAX)
    elif not legacy and _DTYPE.fullmatch(member):
        remedy = f"Write the number itself; a tile is cast by nl.copy(t, dtype={shown})."
        context.find("NK609", node, f"{shown} is a dtype, and no function", remedy)
    elif member in CREATING and _sizes_in_front(node) > 1:
        sizes = map(ast.unparse, node.args[: _sizes_in_front(node)])
        context.find("NK609", node, f"{shown} takes a shape as one tuple", shape_remedy(sizes))
    elif member in _RANGES:
        _in_with(context, node)


def _sizes_in_front(node: ast.Call) -> int:
    count = 0
    while count < len(node.args) and isinstance(node.args[count], ast.Constant):
        count += isinstance(node.args[count].value, int)  # type: ignore[attr-defined]
        if not isinstance(node.args[count - 1].value, int):  # type: ignore[attr-defined]
            break
    return count


def _in_with(context: Context, node: ast.Call) -> None:
    for each in context.scope.nodes:
        if isinstance(each, ast.With) and any(item.context_expr is node for item in each.items):
            message = f"{ast.unparse(node)} is a range for a loop"
            context.find("NK609", node, message, f"Write `for i in {ast.unparse(node)}:`.")


def argued(context: Context, node: ast.Attribute, function: Api) -> None:
    """``range(nl.tile_size)``."""
    if function.name.endswith(".language.tile_size"):
        calls = context.scope.calls
        if any(node in each.args for each in calls):
            context.find("NK609", node, f"{_SIZES}, and is no number", _PMAX)


def attribute(context: Context, node: ast.Attribute, base: Tensor) -> None:
    """``tile.astype(...)``, ``tile.T``, ``tile.tile`` of the modern dialect."""
    if context.modern and context.interface is not None:
        missing = context.interface.missing(f"nki.language.NkiTensor.{node.attr}")
        if missing is not None:
            context.find("NK601", node, f"`{ast.unparse(node)}`: {missing[1]}", missing[2])


def operands(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Report an operand in HBM of a computing engine: an argument of the kernel, or a tensor that is made there."""
    legacy, module, member = parts(function.name)
    if legacy or module != "isa" or member not in _COMPUTING or context.interface is None:
        return
    nodes: dict[str, ast.expr] = {each.arg: each.value for each in node.keywords if each.arg}
    bound = context.interface.bound(function.name, given)
    for name in _OPERANDS if bound else ():  # a call that does not fit is another matter
        value, written = bound.get(name), nodes.get(name)
        in_hbm = isinstance(value, Tensor) and value.memory == "hbm"
        if in_hbm or (written is not None and _is_argument(context, written)):
            shown = "" if written is None else f"`{ast.unparse(written)}`, "
            message = f"{function.short}: `{name}`, {shown}lies in HBM; engines compute in SBUF and PSUM"
            remedy = (
                "Write to a tile, and copy it there with nisa.dma_copy." if name == "dst" else "Load it first: nl.load."
            )
            context.find("NK201", node, message, remedy, instruction=member, argument=name, memory="HBM")
            return


def _is_argument(context: Context, node: ast.expr) -> bool:
    """Return whether an expression is an argument of the kernel, or a part of one, that is never bound again."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else ""
    return context.kernel and name in context.scope.parameters and not context.scope.variables.get(name)


def operators(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """NK306: ``op0=nl.log``, an activation function."""
    _, module, member = parts(function.name)
    if module != "isa" or member not in _MATHEMATICAL or context.interface is None:
        return
    for name, value in context.interface.bound(function.name, given).items():
        word = value.name.rpartition(".")[2] if isinstance(value, Api) and name.startswith("op") else ""
        row = meanings().get(word)
        if row is not None and row.into.startswith("nisa.activation") and word not in _BOTH:
            message = f"nisa.{member}: `{name}`=nl.{word} is an activation function, not a math operator"
            remedy = f"Call nisa.activation(dst, op=nl.{word}, data=...)."
            context.find("NK306", node, message, remedy, instruction=member, argument=name)


def too_large(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """NK110, NK202, NK203: a tile of one dimension, or one whose written sizes fit no partition of any chip."""
    made: Value = called(function.name, given)
    _, module, member = parts(function.name)
    if module != "language" or member not in CREATING or not isinstance(made, Tensor) or not made.dtype:
        return
    if made.on_chip and made.shape is not None and len(made.shape) == 1 and _sizes_in_front(node) < 2:
        message = f"{function.short} makes a tile of one dimension; it has at least two (partition and free)"
        size = made.shape[0] or "n"
        context.find("NK110", node, message, f"Give it the shape ({size}, 1) or (1, {size}).")
    width = re.sub(r"\D", "", made.dtype.partition("_")[0])
    if not made.on_chip or made.shape is None or None in made.shape or not width:
        return
    needed = prod(each or 0 for each in made.shape[1:]) * int(width) // 8
    in_psum = made.memory == "psum"
    room = max(each.psum_partition_bytes if in_psum else each.sbuf_usable_bytes for each in TABLES)
    if needed > room:
        message = f"{function.short} makes a tile of {needed:,} bytes a partition; {made.memory.upper()} has {room:,}"
        remedy = "Make the free dimension shorter, and handle a piece of it in each turn of a loop."
        context.find("NK203" if in_psum else "NK202", node, message, remedy, extent=needed, limit=room)


LISTENS = {"call": (used, operands, operators, too_large), "name": (argued,), "attribute": (attribute,)}
