"""NK602: control flow that depends on the elements of a tensor, on a register or on a scalar of the device."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Index, Mask, Register, Scalar, Tensor, Value
from nkitools.lint.context import Context

_STEER = "Let the device choose: nl.fori_loop(0, flag, body) runs its body once for a flag of 1, never for one of 0."


def of_tensor(context: Context, node: ast.expr, value: Value) -> None:
    """``if tile:``, ``while tile:``, ``not tile``, ``tile and other``, ``assert tile``, ``bool(tile)``."""
    shown = ast.unparse(node)
    if isinstance(value, Tensor) and value.memory == "hbm" and not context.legacy:
        message = f"the truth value of `{shown}`, in HBM, is asked for; the documents have none of a tensor"
        context.find("NK621", node, message, "Write `is not None`.")
    elif isinstance(value, Tensor):
        context.find("NK602", node, f"the truth value of `{shown}`, a tensor, is asked for when the kernel is compiled")
    elif isinstance(value, Scalar) or (isinstance(value, Register) and node is not context.loop_test):
        kind = "register" if isinstance(value, Register) else "scalar of the device"
        context.find("NK602", node, f"the truth value of `{shown}`, a {kind}, is asked for; Python has none", _STEER)
    elif isinstance(value, Index) or (isinstance(value, Mask) and context.testing):
        context.find("NK602", node, f"the truth value of `{shown}`, of all positions of a tile, is asked for")


def of_number(context: Context, node: ast.expr, value: Value) -> None:
    """``int(tile)``, ``float(tile)``."""
    if isinstance(value, Tensor):
        context.find("NK602", node, f"`{ast.unparse(node)}`, a tensor, is used as a Python number")


LISTENS = {"truth": (of_tensor,), "number": (of_number,)}
