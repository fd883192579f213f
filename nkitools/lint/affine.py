"""Lengths of slices with unknown ends: ``i * 128 : (i + 1) * 128`` has 128 elements for every ``i``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from nkitools.lint.abstract_values import Value, whole

_ONE = ""
Terms = Counter[str]  # the factor of each unknown; that of '' is the constant
Known = Callable[[ast.expr], Value]


def extent(lower: ast.expr, upper: ast.expr, known: Known) -> int | None:
    """``upper - lower`` where the unknowns cancel out."""
    first, last = _terms(lower, known), _terms(upper, known)
    if first is None or last is None:
        return None
    last.subtract(first)
    constant = last.pop(_ONE, 0)
    return constant if not any(last.values()) else None


def _terms(node: ast.expr, known: Known) -> Terms | None:
    number = whole(known(node))
    if number is not None:
        return Counter({_ONE: number})
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            first, second = _terms(left, known), _terms(right, known)
            if first is None or second is None:
                return None
            first.update(second) if isinstance(sign, ast.Add) else first.subtract(second)
            return first
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_terms(left, known), _terms(right, known))
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return Counter({ast.dump(node): 1})
    return None


def _product(first: Terms | None, second: Terms | None) -> Terms | None:
    if first is None or second is None:
        return None
    for one, other in ((first, second), (second, first)):
        if set(one) <= {_ONE}:
            return Counter({name: factor * one[_ONE] for name, factor in other.items()})
    return None
