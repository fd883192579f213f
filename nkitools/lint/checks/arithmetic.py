"""NK601, NK607, NK621: Python's operators on tensors and scalars of the device, NumPy and iteration on tensors."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_operations import compares_elements
from nkitools.lint.abstract_values import Constant, Number, Scalar, Tensor, Value
from nkitools.lint.context import Context

_REMEDY = "Call nl.add, nl.subtract, nl.multiply, … or nisa.tensor_tensor / nisa.tensor_scalar."


def _operator(context: Context, node: ast.expr | ast.stmt, *values: Value) -> None:
    if context.modern and any(isinstance(each, Tensor) for each in values):
        what = ast.unparse(node)
        context.find("NK601", node, f"`{what}` computes on a tensor with a Python operator", _REMEDY, expression=what)


def of_scalar(context: Context, node: ast.BinOp | ast.UnaryOp | ast.AugAssign, *values: Value) -> None:
    """``scalar // 2``: of a scalar of the device only sums, differences and products are documented (NK607)."""
    if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.USub, ast.UAdd, ast.Not)):
        return
    # A register computes a quotient itself where it stands on the left; of unknown things that is not known.
    if isinstance(values[0], Scalar) or (isinstance(values[-1], Scalar) and isinstance(values[0], (Number, Constant))):
        message = f"`{ast.unparse(node)}` computes on a scalar of the device; scalars have +, - and *"
        context.find("NK607", node, message, "Compute the number in a tensor, and load it with nisa.scalar_load.")


def compared(context: Context, node: ast.Compare, *values: Value) -> None:
    """``tile < 3``, ``tile == 0``; kernels compare with None by ``==``, which asks whether two are the same object."""
    if context.testing:  # NK602: the truth value is asked for
        return
    for left, right, sign in zip(values, values[1:], node.ops, strict=False):
        if compares_elements(left, right, sign):
            _operator(context, node, left, right)
            return


def contained(context: Context, node: ast.Compare, *values: Value) -> None:
    """``x in tile``."""
    for value, sign in zip(values[1:], node.ops, strict=True):
        if isinstance(value, Tensor) and isinstance(sign, (ast.In, ast.NotIn)):
            context.find("NK601", node, f"`{ast.unparse(node)}` searches the elements of a tensor")


def iterated(context: Context, node: ast.expr, value: Value) -> None:
    """``for row in tile``."""
    if isinstance(value, Tensor):
        message = f"`{ast.unparse(node)}`, a tensor, is iterated over"
        context.find("NK601", node, message, "Index it in a loop over a range.")


def numpy(context: Context, node: ast.Call, name: str, *values: Value) -> None:
    """``np.sum(tile)``."""
    if name.partition(".")[0] == "numpy" and any(isinstance(each, Tensor) for each in values):
        what = ast.unparse(node.func)
        context.find("NK601", node, f"`{what}` is given a tensor; NumPy does not run on the chip", expression=what)


def put(context: Context, target: ast.Subscript, base: Value, node: ast.expr, value: Value) -> None:
    """``tile[...] = value``, which the legacy dialect has."""
    if not context.modern or not isinstance(base, Tensor):
        return
    message = f"`{ast.unparse(target)} = ...` assigns to elements of a tensor, which has no documented meaning"
    if isinstance(value, (Number, Constant)):
        context.find("NK607", target, message, "Write nisa.memset(tensor[...], value) instead.")
    else:
        remedy = "Write nisa.tensor_copy(dst=tensor[...], src=value) or nisa.dma_copy instead."
        context.find("NK621", target, f"{message}; some compilers refuse it", remedy)


def measured(context: Context, node: ast.Call, value: Value) -> None:
    """``len(tile)``."""
    if isinstance(value, Tensor) and value.memory != "hbm":
        shown = ast.unparse(node.args[0])
        context.find("NK601", node, f"`{ast.unparse(node)}` asks a tensor for its length", f"Write {shown}.shape[0].")


LISTENS = {
    "length": (measured,),
    "binary": (_operator, of_scalar),
    "unary": (_operator, of_scalar),
    "update": (_operator, of_scalar),
    "compare": (compared, contained),
    "put": (put,),
    "iterate": (iterated,),
    "foreign call": (numpy,),
}
