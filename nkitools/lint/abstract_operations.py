"""Binary operations and comparisons of abstract values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from nkitools.lint.abstract_values import (
    MASK,
    UNKNOWN,
    Comparison,
    Constant,
    Index,
    Mask,
    Number,
    Register,
    Scalar,
    Tensor,
    Value,
    is_float,
    whole,
)

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_LARGEST = 1 << 64


def compares_elements(left: Value, right: Value, sign: ast.cmpop) -> bool:
    """Return whether ``left < right`` is of a tensor's elements; ``tensor == None`` asks whether it is there."""
    if not (isinstance(left, Tensor) or isinstance(right, Tensor)):
        return False
    if isinstance(sign, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return True
    equality = isinstance(sign, (ast.Eq, ast.NotEq))
    return equality and all(
        isinstance(each, (Tensor, Number)) or whole(each) is not None or is_float(each) for each in (left, right)
    )


def combined(operation: ast.operator, left: Value, right: Value) -> Value:
    """Return the abstract value of a binary operation."""
    if isinstance(left, (Tensor, Comparison)) or isinstance(right, (Tensor, Comparison)):
        return Tensor()
    if isinstance(left, Mask) or isinstance(right, Mask):
        return MASK
    if isinstance(left, Index) or isinstance(right, Index):
        return _index(operation, left, right)
    if isinstance(left, Register) or isinstance(right, Register):
        return Register()
    scalars = [each for each in (left, right) if isinstance(each, Scalar)]
    if scalars:
        widths = {each.dtype for each in scalars}
        unsure = any(each is UNKNOWN for each in (left, right)) or any(each.maybe_register for each in scalars)
        return Scalar(widths.pop() if len(widths) == 1 else "", maybe_register=unsure and "int64" not in widths)
    first, second = whole(left), whole(right)
    compute = _ARITHMETIC.get(type(operation))
    if first is not None and second is not None and compute is not None:
        try:
            result = compute(first, second)
        except ArithmeticError:
            return UNKNOWN
        return Constant(result) if abs(result) < _LARGEST else Number(type(result))
    numbers = [isinstance(each, Number) or whole(each) is not None or is_float(each) for each in (left, right)]
    if all(numbers):
        is_whole = not isinstance(operation, ast.Div) and not is_float(left) and not is_float(right)
        return Number(int if is_whole else float)
    return UNKNOWN


def _index(operation: ast.operator, left: Value, right: Value) -> Index:
    """Return the broadcast index of an operation; ``//`` and ``%`` leave the affine indices."""
    both = [each for each in (left, right) if isinstance(each, Index)]
    ndims = [each.ndim for each in both]
    known = [each for each in ndims if each is not None]
    affine = all(each.affine for each in both) and not isinstance(operation, (ast.FloorDiv, ast.Mod))
    return Index(max(known) if len(known) == len(ndims) else None, affine)
