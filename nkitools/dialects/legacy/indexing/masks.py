"""Masks: comparisons of affine expressions joined with ``&``, known when the kernel is compiled.

"An execution predicate known at compile-time, which informs the compiler to skip generating the instruction or
generate the instruction with a smaller input tile shape" (NKI API Common Fields, Masking). A mask whose comparisons
each bound one axis is such a smaller tile, a box; other masks are a predicate over the tile.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import neg
from types import EllipsisType, FrameType
from typing import Any, NoReturn, Protocol, SupportsIndex, TypeAlias

import numpy as np

from nkitools.authors_code.positions import line_of
from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.indexing.mask_and import waits, was_lost, with_left_side
from nkitools.facts.kept import Kept
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import refuse

# What stands in the brackets behind an index, a mask or a tensor: numbers, slices, indices and tiles.
Subscript: TypeAlias = "SupportsIndex | slice | EllipsisType | Sequence[Any] | Affine | None"
Box: TypeAlias = tuple[tuple[int, int], ...]  # first and end position along each axis of a tile

_lanes = Kept["tuple[Any, ...]", "Lanes | None"](
    "what masks leave of a tile, by shape and form; None for all of it", 50_000, "masks of long loops; boxes alone"
)

_FORM = "Compare affine expressions of indices, loop counters and program ids with <, <=, >, >= or ==, and join with &."


def not_affine(reason: str) -> NoReturn:
    """Refuse a mask (NK604)."""
    refuse("NK604", f"a mask must be comparisons of affine expressions joined with &; {reason}", remedy=_FORM)


class Affine(Protocol):
    """An affine expression over the axes of a tile; see `nkitools.dialects.legacy.indexing.indices.Index`."""

    constant: int
    coefficients: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int: ...
    def values(self, box: Box) -> Array: ...
    def __neg__(self) -> Affine: ...
    def __sub__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Constraint:
    """``expression >= 0``, or ``expression == 0``."""

    expression: Affine
    equality: bool

    @property
    def axes(self) -> list[int]:
        """The axes that the expression varies along."""
        return [axis for axis, slope in enumerate(self.expression.coefficients) if slope]

    def interval(self, axis: int) -> tuple[int, int]:
        """First and end position along the only axis that it varies along (end <= first: none)."""
        slope, constant = self.expression.coefficients[axis], self.expression.constant
        if self.equality:
            at, rest = divmod(-constant, slope)
            return (at, at + 1) if rest == 0 else (0, 0)
        if slope > 0:
            return -(constant // slope), self.expression.shape[axis]
        return 0, constant // -slope + 1

    def holds(self, box: Box) -> Array:
        """Return a boolean array: where the comparison holds in a box."""
        values = self.expression.values(box)
        return np.asarray(values == 0 if self.equality else values >= 0)


@dataclass(frozen=True, eq=False)
class Lanes:
    """The elements of a tile that an instruction computes: a box, and a mask in it (None: all of the box)."""

    box: Box
    where: Array | None = None

    @property
    def empty(self) -> bool:
        """Return whether no lane is left."""
        return any(end <= first for first, end in self.box)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box as a NumPy index."""
        return tuple(slice(first, end) for first, end in self.box)

    def boxes(self) -> list[Box]:
        """Return the lanes as boxes without lanes that are masked out: one run of the last axis each."""
        if self.where is None:
            return [self.box]
        found: list[Box] = []
        for lead in np.ndindex(self.where.shape[:-1]):
            edges = np.flatnonzero(np.diff(np.concatenate(([0], self.where[lead].view(np.int8), [0]))))
            outer = tuple((first + at, first + at + 1) for at, (first, _) in zip(lead, self.box[:-1], strict=True))
            start = self.box[-1][0]
            found += [(*outer, (start + int(a), start + int(b))) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        return found


class Mask:
    """Comparisons joined with ``&``."""

    __slots__ = ("constraints", "never")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, constraints: tuple[Constraint, ...], never: bool = False) -> None:
        self.constraints = constraints
        self.never = never

    def __repr__(self) -> str:
        return f"<mask of {len(self.constraints)} comparisons>"

    @property
    def form(self) -> tuple[Any, ...]:
        """All that the lanes of the mask follow from, as something that can be hashed."""
        found: list[Any] = [self.never]
        for each in self.constraints:
            expression = each.expression
            found += (each.equality, expression.constant, expression.coefficients, expression.shape)
        return tuple(found)

    def __and__(self, other: Mask | bool | np.bool_) -> Mask:
        if isinstance(other, Mask):
            return Mask(self.constraints + other.constraints, self.never or other.never)
        if isinstance(other, (bool, np.bool_)):
            return self if other else Mask(self.constraints, never=True)
        not_affine(f"it is joined with {type(other).__name__}, which is no comparison of indices")

    __rand__ = __and__

    def _no_operator(self, other: MaskLike | Affine = None) -> NoReturn:
        not_affine("it is joined or changed by another operator")

    __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = __add__ = __sub__ = __mul__ = __neg__ = _no_operator
    __eq__ = __ne__ = _no_operator  # type: ignore[assignment]

    def __setitem__(self, key: Subscript, value: float | np.generic) -> NoReturn:
        code = "err_cannot_assign_to_index"
        refuse("NK603", f"a mask does not support item assignment ({code})", facts={"code": code})

    def __bool__(self) -> bool:
        check_joined()
        if not waits(self):
            self._no_truth()
        return True

    def _no_truth(self) -> NoReturn:
        if _joined_by_words(author_frame(2)):
            not_affine("it is joined by `and`, `or`, `not` or a chain of comparisons, which ask for one truth value")
        message = (
            "control flow depends on a comparison of an index made of nl.arange or nl.mgrid, which holds for some "
            "positions of a tile and not for others (err_control_flow_condition_depending_on_arange)"
        )
        remedy = "Pass the condition as mask= to the calls that it concerns."
        refuse("NK602", message, remedy=remedy, facts={"code": "err_control_flow_condition_depending_on_arange"})

    def lanes(self, shape: tuple[int, ...], what: str) -> Lanes:
        """Return the elements of a tile of ``shape`` at which the mask holds; NK604 if the mask is for another tile."""
        if self.never:
            return Lanes(tuple((0, 0) for _ in shape))
        box = [(0, size) for size in shape]
        rest: list[Constraint] = []
        for constraint in self.constraints:
            axes = constraint.axes
            self._check_axes(constraint.expression, axes, shape, what)
            if len(axes) == 1:
                first, end = constraint.interval(axes[0])
                box[axes[0]] = (max(box[axes[0]][0], first), min(box[axes[0]][1], end))
            elif not axes:
                constant = constraint.expression.constant
                if not (constant == 0 if constraint.equality else constant >= 0):
                    return Lanes(tuple((0, 0) for _ in shape))
            else:
                rest.append(constraint)
        lanes = Lanes(tuple(box))
        return lanes if lanes.empty or not rest else _with_predicate(lanes, rest)

    def _check_axes(self, expression: Affine, axes: list[int], shape: tuple[int, ...], what: str) -> None:
        if axes and expression.ndim != len(shape):
            not_affine(f"{what}: it has {expression.ndim} dimensions, the tile has {len(shape)}: {list(shape)}")
        for axis in axes:
            if expression.shape[axis] != shape[axis]:
                not_affine(
                    f"{what}: its axis {axis} has {expression.shape[axis]} positions, dimension {axis} of the tile "
                    f"{list(shape)} has {shape[axis]}"
                )


def _with_predicate(lanes: Lanes, rest: list[Constraint]) -> Lanes:
    where = np.ones([end - first for first, end in lanes.box], bool)
    for constraint in rest:
        where &= constraint.holds(lanes.box)
    if where.all():
        return lanes
    if not where.any():
        return Lanes(tuple((0, 0) for _ in lanes.box))
    return Lanes(lanes.box, where)


def compare(left: Affine, symbol: str, right: Any) -> Mask:
    """Return the mask ``left <symbol> right``."""
    if symbol == "!=":
        not_affine("it compares with !=")
    if right.__class__ is int:
        return with_left_side(Mask((Constraint(_above(left, symbol, right), symbol == "=="),)))
    is_integer = hasattr(right, "__index__") and not hasattr(right, "is_runtime")
    difference = left - right if is_integer or isinstance(right, type(left)) else None
    if difference is None or isinstance(right, (bool, np.bool_)):
        not_affine(f"it compares an index with {type(right).__name__} instead of an integer or an index")
    if symbol == "==":
        return with_left_side(Mask((Constraint(difference, True),)))
    expression = difference if symbol in (">", ">=") else -difference
    return with_left_side(Mask((Constraint(expression - 1 if symbol in ("<", ">") else expression, False),)))


def _above(left: Affine, symbol: str, right: int) -> Affine:
    """Return an expression that is >= 0 (or == 0 for ``==``) exactly if ``left <symbol> right``."""
    constant, slopes = left.constant - right, left.coefficients
    if symbol in ("<", "<="):
        constant, slopes = -constant, tuple(map(neg, slopes))
    found: Affine = type(left)(constant - (symbol in ("<", ">")), slopes, left.shape)  # type: ignore[call-arg]
    return found


def check_joined() -> None:
    """NK604: of ``i_p < h and flag`` Python keeps only the flag."""
    if was_lost():
        not_affine("it is joined by `and` with a plain truth value, which takes the place of the comparison")


NO_MASK = Mask(())
MaskLike: TypeAlias = Mask | bool | np.bool_ | None  # what `mask=` takes


def lanes_of(mask: MaskLike, shape: tuple[int, ...], what: str) -> Lanes | None:
    """Return the lanes that ``mask`` leaves of a tile (None: all). A plain truth value executes or skips the
    instruction.

    Errors: NK604.
    """
    if mask is None:
        return None
    check_joined()
    if isinstance(mask, Mask):
        key = (shape, mask.form)
        if key not in _lanes:
            lanes = mask.lanes(shape, what)
            if lanes.where is not None:
                return lanes  # an array for each of them would take up memory
            _lanes[key] = None if lanes.box == tuple((0, size) for size in shape) else lanes
        return _lanes[key]
    if isinstance(mask, (bool, np.bool_)):
        return None if mask else Lanes(tuple((0, 0) for _ in shape))
    not_affine(f"{what}: mask is {type(mask).__name__}")


# --- who asks for a truth value --------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _conditions(source: str) -> tuple[list[ast.expr], list[ast.expr]]:
    """Return the tests of if, while and assert, and the expressions that join by words or chain comparisons."""
    tests: list[ast.expr] = []
    joined: list[ast.expr] = []
    for node in nodes_of(source):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            tests.append(node.test)
        if (
            isinstance(node, ast.BoolOp)
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
            or (isinstance(node, ast.Compare) and len(node.ops) > 1)
        ):
            joined.append(node)
    return tests, joined


def _joined_by_words(frame: FrameType | None) -> bool:
    """Return whether the truth value is asked for by ``and``, ``or``, ``not`` or a chain outside of a condition."""
    if frame is None:
        return False
    tests, joined = _conditions(text_of(frame.f_code))
    line = line_of(frame)

    def covers(node: ast.expr) -> bool:
        return node.lineno <= line <= (node.end_lineno or node.lineno)

    return any(covers(node) for node in joined) and not any(covers(node) for node in tests)
