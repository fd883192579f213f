"""Symbolic indices, made by ``nl.arange`` and ``nl.mgrid``, and their arithmetic.

An index is an affine expression over the axes of the tile that it describes: constant + sum of coefficient * position.
An axis is identified by its place in the tile's shape and its size, so that two ``nl.arange(128)[:, None]`` are the
same axis, as they are to AWS's compiler (NKI API Common Fields, Masking). Loop counters and program ids are integers
here and end up in the constant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.indexing.masks import Box, Mask, Subscript, compare, not_affine
from nkitools.rules.finding import refuse


def whole(value: Any) -> int | None:
    """``value`` as a Python integer, or None if it is no integer."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_, np.ndarray)) or hasattr(value, "is_runtime"):
        return None
    if not hasattr(value, "__index__"):
        return None
    return int(value.__index__())


IndexLike: TypeAlias = "Index | NonAffine | int | np.integer[Any]"  # what index arithmetic takes


class Index:
    """An affine expression over the axes of a tile.

    ``shape``: its shape as an array (size 1 along axes on which it does not vary). ``coefficients``: its slope along
    each axis. Sums, differences, and products with integers stay affine; other results do not (NK603, in a mask NK604).
    """

    __slots__ = ("coefficients", "constant", "shape")
    __array_ufunc__ = None  # an integer of NumPy on the left leaves the arithmetic to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, constant: int, coefficients: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.constant = constant
        self.coefficients = coefficients
        self.shape = shape

    def __repr__(self) -> str:
        terms = [f"{slope}*axis{axis}" for axis, slope in enumerate(self.coefficients) if slope]
        return f"<index {' + '.join([str(self.constant), *terms])} of shape {list(self.shape)}>"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def bounds(self, box: Box | None = None) -> tuple[int, int]:
        """Smallest and largest value over a box (default: over all of the shape)."""
        low = high = self.constant
        for axis, slope in enumerate(self.coefficients):
            if slope:
                first, end = (0, self.shape[axis]) if box is None else box[axis]
                ends = (slope * first, slope * (end - 1))
                low, high = low + min(ends), high + max(ends)
        return low, high

    def values(self, box: Box) -> Array:
        """Return the values over a box, in a shape that broadcasts to the box's."""
        result = np.asarray(self.constant).reshape((1,) * len(box))
        for axis, slope in enumerate(self.coefficients):
            if slope:
                first, end = box[axis]
                line = [1] * len(box)
                line[axis] = end - first
                result = result + slope * np.arange(first, end).reshape(line)
        return result

    # --- arithmetic ------------------------------------------------------------------------------------------------

    def _plus(self, other: IndexLike, sign: int, sign_of_other: int, symbol: str) -> Any:
        """``sign * self + sign_of_other * other``."""
        number = whole(other)
        if number is not None:
            scaled = self if sign == 1 else self._times(sign)
            return Index(scaled.constant + sign_of_other * number, scaled.coefficients, scaled.shape)
        if isinstance(other, Index):
            return _sum(self, other, sign, sign_of_other)
        return NotImplemented if isinstance(other, Divided) else _other_operand(symbol, other)

    def _times(self, factor: int) -> Index:
        slopes = self.coefficients
        if len(slopes) == 2:  # the usual index, without a loop
            return Index(self.constant * factor, (slopes[0] * factor, slopes[1] * factor), self.shape)
        return Index(self.constant * factor, tuple([slope * factor for slope in slopes]), self.shape)

    def __add__(self, other: IndexLike) -> Any:
        if other.__class__ is int:
            return Index(self.constant + other, self.coefficients, self.shape)
        return self._plus(other, 1, 1, "+")

    __radd__ = __add__

    def __sub__(self, other: IndexLike) -> Any:
        return self._plus(other, 1, -1, "-")

    def __rsub__(self, other: IndexLike) -> Any:
        return self._plus(other, -1, 1, "-")

    def __mul__(self, other: IndexLike) -> Any:
        number = other if other.__class__ is int else whole(other)
        if number is not None:
            return self._times(number)
        return NonAffine("the product of two indices") if isinstance(other, Index) else _other_operand("*", other)

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self._times(-1)

    def __pos__(self) -> Index:
        return self

    def __floordiv__(self, other: IndexLike) -> NonAffine:
        return divided(self, "//", other)

    def __mod__(self, other: IndexLike) -> NonAffine:
        return divided(self, "%", other)

    def __rfloordiv__(self, other: IndexLike) -> NonAffine:
        return NonAffine("a floor division (//)")

    def __rmod__(self, other: IndexLike) -> NonAffine:
        return NonAffine("a remainder (%)")

    def __truediv__(self, other: IndexLike) -> NonAffine:
        return NonAffine("a division (/)")

    def __pow__(self, other: IndexLike) -> NonAffine:
        return NonAffine("a power (**)")

    __rtruediv__, __rpow__ = __truediv__, __pow__

    # --- comparisons: masks ----------------------------------------------------------------------------------------

    def __lt__(self, other: IndexLike) -> Mask:
        return compare(self, "<", other)

    def __le__(self, other: IndexLike) -> Mask:
        return compare(self, "<=", other)

    def __gt__(self, other: IndexLike) -> Mask:
        return compare(self, ">", other)

    def __ge__(self, other: IndexLike) -> Mask:
        return compare(self, ">=", other)

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        return compare(self, "==", other)

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return compare(self, "!=", other)

    # --- what an index is not --------------------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        message = (
            "control flow depends on an index made of nl.arange or nl.mgrid, which stands for all positions of a tile "
            "(err_control_flow_condition_depending_on_arange)"
        )
        remedy = "Pass the condition as mask= to the calls that it concerns."
        refuse("NK602", message, remedy=remedy, facts={"code": "err_control_flow_condition_depending_on_arange"})

    def __setitem__(self, key: Subscript, value: float | np.generic) -> NoReturn:
        message = "an index does not support item assignment (err_cannot_assign_to_index)"
        remedy = "Make a tile of it with nisa.iota(index, dtype=nl.int32) and assign to that."
        refuse("NK603", message, remedy=remedy, facts={"code": "err_cannot_assign_to_index"})

    def __iter__(self) -> NoReturn:
        refuse("NK603", "an index cannot be iterated over; it stands for all positions of a tile at once")

    def __getitem__(self, key: Subscript) -> Index:
        """Return the index with new axes (None) and slices, as NumPy has them: ``nl.arange(128)[:, None]``."""
        items = list(key) if isinstance(key, tuple) else [key]
        taken = sum(item is not None and item is not Ellipsis for item in items)
        if items.count(Ellipsis) > 1 or taken > self.ndim:
            refuse("NK603", f"{key!r} does not fit an index of {self.ndim} dimensions")
        if Ellipsis not in items:
            items.append(Ellipsis)
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (self.ndim - taken)
        return self._sliced(items)

    def _sliced(self, items: list[Any]) -> Index:
        constant, coefficients, shape = self.constant, [], []
        axes = iter(range(self.ndim))
        for item in items:
            if item is None:
                coefficients.append(0)
                shape.append(1)
                continue
            axis = next(axes)
            if not isinstance(item, slice):
                refuse("NK603", f"an index is subscripted with `:`, slices and None, not with {item!r}")
            positions = range(*item.indices(self.shape[axis]))
            if not positions:
                refuse("NK603", f"slice {item} of an index of shape {list(self.shape)} holds no position")
            constant += self.coefficients[axis] * positions[0]
            coefficients.append(self.coefficients[axis] * positions.step if len(positions) > 1 else 0)
            shape.append(len(positions))
        return Index(constant, tuple(coefficients), tuple(shape))


def _sum(first: Index, second: Index, sign: int, sign_of_second: int) -> Index:
    """``sign * first + sign_of_second * second``, their shapes broadcast as NumPy does."""
    ndim = max(first.ndim, second.ndim)
    shapes = [(1,) * (ndim - each.ndim) + each.shape for each in (first, second)]
    slopes = [(0,) * (ndim - each.ndim) + each.coefficients for each in (first, second)]
    for size, other in zip(*shapes, strict=True):
        if size != other and 1 not in (size, other):
            refuse("NK603", f"indices of shapes {list(first.shape)} and {list(second.shape)} do not broadcast")
    return Index(
        sign * first.constant + sign_of_second * second.constant,
        tuple(sign * slope + sign_of_second * other for slope, other in zip(*slopes, strict=True)),
        tuple(max(size, other) for size, other in zip(*shapes, strict=True)),
    )


def _other_operand(symbol: str, other: IndexLike) -> Any:
    if isinstance(other, NonAffine):
        return other
    if isinstance(other, (float, np.floating)):
        return NonAffine(f"`{symbol}` with the fraction {other!r}")
    return NotImplemented


class NonAffine:
    """An index after arithmetic that is not affine: refused where it is used (NK603, NK604)."""

    __slots__ = ("reason",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def refuse(self) -> NoReturn:
        """Refuse the use as an index."""
        refuse(
            "NK603",
            "an index must be an affine expression of nl.arange, loop counters and program ids; this one holds "
            f"{self.reason}",
            remedy="Split the axis into two nl.arange of their own: outer * size + inner instead of // and %.",
        )

    def _same(self, other: IndexLike) -> Any:
        return self

    def __neg__(self) -> Any:
        return self

    def _in_mask(self, other: IndexLike) -> NoReturn:
        not_affine(f"it holds {self.reason}")

    def __bool__(self) -> NoReturn:
        self.refuse()

    def __getitem__(self, key: Subscript) -> NonAffine:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = _in_mask
    __eq__ = __ne__ = _in_mask  # type: ignore[assignment]


class Divided(NonAffine):
    """An index divided by a constant, or the remainder, also after sums and products with integers.

    As an index of a tensor its values are checked (`divided_access`); everywhere else it counts as not affine.
    """

    __slots__ = ("shape", "values")

    def __init__(self, reason: str, shape: tuple[int, ...], values: Callable[[Box], Array]) -> None:
        super().__init__(reason)
        self.shape = shape
        self.values = values

    def _with(self, compute: Callable[[Any, Any], Any], other: Any, *, reverse: bool = False) -> Any:
        number, is_index = whole(other), isinstance(other, (Index, Divided))
        if number is None and not is_index:
            return _other_operand("//", other)
        shape = np.broadcast_shapes(self.shape, other.shape) if is_index else self.shape

        def values(box: Box) -> Array:
            mine, its = self.values(within(box, self.shape)), number
            if is_index:
                its = other.values(within(box, other.shape))
            return np.asarray(compute(its, mine) if reverse else compute(mine, its))

        return Divided(self.reason, shape, values)

    def _times(self, other: IndexLike) -> Any:
        return NonAffine(self.reason) if whole(other) is None else self._with(operator.mul, other)

    def __add__(self, other: IndexLike) -> Any:
        return self._with(operator.add, other)

    def __sub__(self, other: IndexLike) -> Any:
        return self._with(operator.sub, other)

    def __rsub__(self, other: IndexLike) -> Any:
        return self._with(operator.sub, other, reverse=True)

    def __neg__(self) -> Any:
        return self._with(operator.mul, -1)

    def __floordiv__(self, other: IndexLike) -> NonAffine:
        return divided(self, "//", other)

    def __mod__(self, other: IndexLike) -> NonAffine:
        return divided(self, "%", other)

    def __getitem__(self, key: Subscript) -> NonAffine:
        return NonAffine(self.reason)

    def _same(self, other: IndexLike) -> Any:
        return NonAffine(self.reason)

    __radd__ = __add__  # type: ignore[assignment]
    __mul__ = __rmul__ = _times
    __rfloordiv__ = __rmod__ = __truediv__ = __rtruediv__ = _same


_DIVIDERS = {"//": (operator.floordiv, "a floor division (//)"), "%": (operator.mod, "a remainder (%)")}


def divided(index: Index | Divided, symbol: str, other: IndexLike) -> NonAffine:
    """Return an index divided by another value: by a positive constant its values are known."""
    compute, reason = _DIVIDERS[symbol]
    number = whole(other)
    if number is None or number < 1:
        return NonAffine(reason)
    return Divided(reason, index.shape, lambda box: np.asarray(compute(index.values(box), number)))


def within(box: Box, shape: tuple[int, ...]) -> Box:
    """Return the box for an index that may have size 1 along some axes of ``box``, or lack leading axes."""
    own = box[len(box) - len(shape) :]
    return tuple((0, 1) if size == 1 else each for each, size in zip(own, shape, strict=True))
