"""NK601: Python's operators, NumPy and iteration on tensors."""

from __future__ import annotations

import ast

from nkitools.lint.context import Context
from nkitools.lint.values import Tensor, Value

_REMEDY = "Call nl.add, nl.subtract, nl.multiply, … or nisa.tensor_tensor / nisa.tensor_scalar."
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _operator(context: Context, node: ast.expr | ast.stmt, *values: Value) -> None:
    if context.modern and any(isinstance(each, Tensor) for each in values):
        what = ast.unparse(node)
        context.find("NK601", node, f"`{what}` computes on a tensor with a Python operator", _REMEDY)


def compared(context: Context, node: ast.Compare, *values: Value) -> None:
    """``tile < 3``; ``==`` asks whether two are the same object, and kernels compare with None that way."""
    sides = zip(values, values[1:], node.ops, strict=False)
    if any(isinstance(sign, _ORDERING) for *pair, sign in sides if any(isinstance(each, Tensor) for each in pair)):
        _operator(context, node, *values)


def contained(context: Context, node: ast.Compare, *values: Value) -> None:
    """``x in tile``."""
    for value, sign in zip(values[1:], node.ops, strict=True):
        if isinstance(value, Tensor) and isinstance(sign, (ast.In, ast.NotIn)):
            context.find("NK601", node, f"`{ast.unparse(node)}` searches the elements of a tensor")


def iterated(context: Context, node: ast.expr, value: Value) -> None:
    """``for row in tile``."""
    if isinstance(value, Tensor):
        context.find(
            "NK601", node, f"`{ast.unparse(node)}`, a tensor, is iterated over", "Index it in a loop over a range."
        )


def numpy(context: Context, node: ast.Call, name: str, *values: Value) -> None:
    """``np.sum(tile)``."""
    if name.partition(".")[0] == "numpy" and any(isinstance(each, Tensor) for each in values):
        context.find("NK601", node, f"`{ast.unparse(node.func)}` is given a tensor; NumPy does not run on the chip")


LISTENS = {
    "binary": (_operator,),
    "unary": (_operator,),
    "update": (_operator,),
    "compare": (compared, contained),
    "iterate": (iterated,),
    "foreign call": (numpy,),
}
