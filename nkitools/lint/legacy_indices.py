"""The index tensors of the legacy dialect as slices: ``nl.arange``, ``nl.mgrid``, sums of them, and masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from nkitools.lint.scope import Scope

AXES = ("p", "x", "y", "z", "w")  # of a grid of nl.mgrid
_BELOW = {ast.Lt: 0, ast.LtE: 1}  # what is added to a bound so that it is the first place outside


class Places(NamedTuple):
    """The places that an index stands for: ``size`` of them from ``start`` on, ``step`` apart.

    ``axis`` is the text of the nl.arange or nl.mgrid that the index comes from, with its ``[:, None]``.
    """

    axis: str
    start: str
    size: str
    step: str = "1"

    def below(self, bound: str) -> str:
        """Return the number of places in front of a bound."""
        left = _minus(bound, self.start)
        if self.step != "1":
            left = f"({_plus(left, _minus(self.step, '1'))}) // {self.step}"
        return f"min({self.size}, {left})"

    def as_slice(self, language: str) -> str:
        """Return the places as they are written between the brackets of an index."""
        if self.step != "1":
            last = _plus(self.start, _times(_minus(self.size, "1"), self.step))
            return f"{self.start}:{_plus(last, '1')}:{self.step}"
        return f"0:{self.size}" if self.start == "0" else f"{language}.ds({self.start}, {self.size})"

    def as_value(self, language: str) -> str:
        """Return the places as an object that a name can hold."""
        return (
            f"slice({self.as_slice(language).replace(':', ', ')})"
            if self.step != "1"
            else f"{language}.ds({self.start}, {self.size})"
        )


class Indices:
    """The index tensors and masks that the names of a function hold."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._values: dict[str, list[tuple[int, ast.expr | Places]]] = {}
        for owner in _outwards(scope):
            for node in owner.nodes:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._note(target, node.value)

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append((value.end_lineno or value.lineno, value))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self._note(one, other)
        elif isinstance(target, ast.Tuple):
            for one, places in zip(target.elts, self._grid(value), strict=False):
                if isinstance(one, ast.Name):
                    self._values.setdefault(one.id, []).append((value.end_lineno or value.lineno, places))

    def value(self, name: str, line: int) -> ast.expr | Places | None:
        """Return what a name holds at a line; None for an unknown name."""
        before = [value for at, value in self._values.get(name, []) if at < line]
        return before[-1] if before else None

    def places(self, node: ast.expr, depth: int = 0) -> Places | None:
        """Return the places that an expression stands for; None for what is no index tensor, or not of one axis."""
        if depth > 8:
            return None
        match node:
            case ast.Name():
                found = self.value(node.id, node.lineno)
                return self.places(found, depth + 1) if isinstance(found, ast.expr) else found
            case ast.Attribute() if node.attr in AXES:
                grid = self._grid(node.value)
                return grid[AXES.index(node.attr)] if AXES.index(node.attr) < len(grid) else None
            case ast.Subscript():
                inner = self.places(node.value, depth) if _adds_dimensions(node.slice) else None
                return inner and inner._replace(axis=f"{inner.axis}[{ast.unparse(node.slice)}]")
            case ast.Call() if self._is("arange", node.func) and 1 <= len(node.args) <= 2 and not node.keywords:
                first, *rest = map(ast.unparse, node.args)
                start, size = (first, _minus(rest[0], first)) if rest else ("0", first)
                return Places(ast.unparse(node), start, size)
            case ast.BinOp():
                return self._computed(node, depth)
        return None

    def _computed(self, node: ast.BinOp, depth: int) -> Places | None:
        left, right = self.places(node.left, depth), self.places(node.right, depth)
        found, number = (left, node.right) if left else (right, node.left)
        if found is None or (left and right) or self.holds_index(number):
            return None
        said = ast.unparse(number)
        match node.op:
            case ast.Add():
                return found._replace(start=_plus(found.start, said) if left else _plus(said, found.start))
            case ast.Sub() if left:
                return found._replace(start=_minus(found.start, said))
            case ast.Mult():
                return found._replace(start=_times(found.start, said), step=_times(found.step, said))
        return None

    def _grid(self, node: ast.expr) -> list[Places]:
        """Return the places of each axis of ``nl.mgrid[0:128, 0:64]``, or of a name that holds it."""
        if isinstance(node, ast.Name):
            found = self.value(node.id, node.lineno)
            return self._grid(found) if isinstance(found, ast.expr) else []
        if not (isinstance(node, ast.Subscript) and self._is("mgrid", node.value)):
            return []
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [
            Places(f"{ast.unparse(node)}, {at}", first, _minus(ast.unparse(each.upper), first))
            for at, each in enumerate(parts)
            if isinstance(each, ast.Slice) and each.upper and not each.step
            for first in [ast.unparse(each.lower) if each.lower else "0"]
        ]

    def _is(self, name: str, node: ast.expr) -> bool:
        return self._scope.qualified(node) == f"nki.language.{name}"

    def holds_index(self, node: ast.expr) -> bool:
        """Return whether an index tensor is a part of an expression."""
        inside = (each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Call | ast.Attribute))
        return any(self.terms(each) for each in inside)

    def left_by(self, mask: ast.expr) -> dict[str, str] | None:
        """Return for each axis the number of places that a mask leaves; None for a mask of another form."""
        if isinstance(mask, ast.Constant) and mask.value is None:
            return {}
        if isinstance(mask, ast.Name):
            found = self.value(mask.id, mask.lineno)
            return self.left_by(found) if isinstance(found, ast.expr) else None
        if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
            sides = [self.left_by(mask.left), self.left_by(mask.right)]
            return None if None in sides else {**(sides[0] or {}), **(sides[1] or {})}
        if not (isinstance(mask, ast.Compare) and len(mask.ops) == 1):
            return None
        low, high = mask.left, mask.comparators[0]
        operator = type(mask.ops[0])
        if operator in (ast.Gt, ast.GtE):
            low, high, operator = high, low, {ast.Gt: ast.Lt, ast.GtE: ast.LtE}[operator]
        places = self.places(low)
        if places is None or operator not in _BELOW or self.holds_index(high):
            return None
        bound = ast.unparse(high)
        return {places.axis: places.below(_plus(bound, "1") if _BELOW[operator] else bound)}

    def is_mask(self, node: ast.expr) -> bool:
        """Return whether an expression compares index tensors."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.BitAnd | ast.BitOr) and (self.is_mask(node.left) or self.is_mask(node.right))
        return isinstance(node, ast.Compare) and self.holds_index(node)

    def terms(self, node: ast.expr) -> list[Places]:
        """Return the places along each axis of a sum of index tensors; [] for other expressions."""
        places = self.places(node)
        if places is not None:
            return [places]
        if isinstance(node, ast.Name):
            found = self.value(node.id, node.lineno)
            return self.terms(found) if isinstance(found, ast.expr) else []
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            return []
        left, right = self.terms(node.left), self.terms(node.right)
        if not left and right:
            return [right[0]._replace(start=_plus(ast.unparse(node.left), right[0].start)), *right[1:]]
        return left + right if left and right else []


def _outwards(scope: Scope) -> Iterator[Scope]:
    if scope.outer is not None:
        yield from _outwards(scope.outer)
    yield scope


def _adds_dimensions(index: ast.expr) -> bool:
    """Return whether an index is one such as ``[:, None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(each, ast.Slice) and each.lower is each.upper is each.step is None)
        or (isinstance(each, ast.Constant) and each.value is None)
        or (isinstance(each, ast.Attribute) and each.attr == "newaxis")
        for each in parts
    )


def _plus(left: str, right: str) -> str:
    if left.isdigit() and right.isdigit():
        return str(int(left) + int(right))
    if right.startswith("-"):
        return f"{left} - {right[1:]}"
    return right if left == "0" else left if right == "0" else f"{left} + {right}"


def _minus(left: str, right: str) -> str:
    if left.isdigit() and right.isdigit() and int(left) >= int(right):
        return str(int(left) - int(right))
    return left if right == "0" else f"{left} - {_bracketed(right, ast.Add, ast.Sub)}"


def _times(left: str, right: str) -> str:
    if left.isdigit() and right.isdigit():
        return str(int(left) * int(right))
    if "0" in (left, right):
        return "0"
    sides = [_bracketed(each, ast.Add, ast.Sub) for each in (left, right) if each != "1"]
    return " * ".join(sides) or "1"


def _bracketed(text: str, *operators: type[ast.operator]) -> str:
    """Return a text in brackets if its outermost operator is one of those."""
    node = ast.parse(text, mode="eval").body
    needs = isinstance(node, ast.IfExp) or (isinstance(node, ast.BinOp) and isinstance(node.op, operators))
    return f"({text})" if needs else text
