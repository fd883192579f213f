"""Scalars: integers of 32 or 64 bits that the device computes, with arithmetic that wraps."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from nkitools.chip.device_numbers import DeviceArithmetic, DeviceNumber, made_of
from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype, int32, int64
from nkitools.rules.finding import not_modelled, refuse

Whole: TypeAlias = "int | np.integer[Any]"

# The operators of Python that no document has for scalars, by their methods.
_UNKNOWN_BINARY = {
    "truediv": "/", "floordiv": "//", "mod": "%", "divmod": "divmod()", "pow": "**", "matmul": "@", "lshift": "<<",
    "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_UNKNOWN_UNARY = {
    "invert": "~", "abs": "abs()", "round": "round()", "trunc": "math.trunc()", "floor": "math.floor()",
    "ceil": "math.ceil()",
}  # fmt: skip


class NkiScalar(DeviceArithmetic["Whole | NkiScalar"]):
    """An integer that the device computes (``nki.isa.NkiScalar``, NKI 0.7), of dtype nl.int32 or nl.int64.

    ``nisa.scalar_load`` and ``nl.fori_loop`` make scalars. ``state``: the value; ``dtype``: None is nl.int32.
    ``+``, ``-`` and ``*`` with a Python integer or a scalar of the same dtype give new scalars of that dtype, whose
    values wrap in two's complement. A float and an integer that does not fit are NK609, a scalar of the other dtype is
    NK301. An int32 scalar and a register give a register.
    A scalar of 32 bits bounds a loop (``nl.fori_loop``) and addresses elements (``scalar_offset=``, an index,
    ``nl.ds``, ``select``); one of 64 bits addresses elements in HBM only (NK301).
    The host does not see the value: ``if``, ``while``, ``and``, ``or``, ``not``, ``int()`` and ``range()`` are refused
    (NK602), and so are comparisons of 64 bits (NK301). A comparison of 32 bits gives an object that nothing takes
    (NK602, NK609). Other operators are not documented (NK607).
    """

    __slots__ = ("dtype", "is_comparison")

    __array_ufunc__ = None  # NumPy's integers leave arithmetic with a scalar to the scalar

    def __init__(self, state: int, dtype: DTypeLike | None = None, is_comparison: bool = False) -> None:
        self.dtype = _dtype_of(dtype)
        self.is_comparison = is_comparison
        if not fits(state, self.dtype):
            refuse("NK609", f"NkiScalar: a scalar of {self.dtype} holds an integer of as many bits, it is {state!r}")
        super().__init__(int(state))

    def read(self, what: str) -> int:
        """Return the value as an int, as `integer` does. ``what``: its use, for the message. Errors: NK609 (the result
        of a comparison).
        """
        return self.integer(what)

    def integer(self, what: str) -> int:
        """Return the value as an int. ``what``: its use, for the message. Errors: NK609 (the result of a
        comparison).
        """
        if self.is_comparison:
            message = f"{what} is given the result of a comparison of scalars, which cannot be used"
            refuse("NK609", message, remedy="Compare in a tensor (nl.less), and load the 0 or 1 with nisa.scalar_load.")
        return int(self.value)

    def check_width(self, what: str) -> None:
        """Refuse a scalar of 64 bits (NK301). ``what``: its use, for the message."""
        if self.dtype is int64:
            remedy = "Load the scalar from a tensor of nl.int32."
            refuse("NK301", f"{what} needs an integer of 32 bits, it is given a scalar of int64", remedy=remedy)

    def operand(self) -> int:
        """Return the value as an int, for arithmetic with a register. Errors: NK301 (a scalar of 64 bits: registers
        have 32), NK609 (the result of a comparison).
        """
        return self.short_integer("register arithmetic")

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def _compute(self, other: Any, function: Callable[[int, int], int], *, swapped: bool = False) -> NkiScalar:
        right = self._other(other, "arithmetic")
        if right is None:
            return NotImplemented  # type: ignore[no-any-return]
        left = self.integer("arithmetic")
        return self._made(function(right, left) if swapped else function(left, right), other)

    def _made(self, value: int, *others: Any) -> NkiScalar:
        """Return a new scalar of the same dtype; values that do not fit wrap, as in two's complement."""
        half = 1 << (8 * self.dtype.itemsize - 1)
        wrapped = (value + half) % (2 * half) - half
        return NkiScalar(wrapped, self.dtype).made_by(made_of(self, *others))

    def _other(self, other: Any, what: str) -> int | None:
        """Return the value of the other operand, None for a thing that is no number. Errors: NK301, NK609."""
        if isinstance(other, NkiScalar):
            if other.dtype is not self.dtype:
                message = f"{what} of a scalar of {self.dtype} and one of {other.dtype}; no scalar changes its width"
                refuse("NK301", message, remedy="Load both from tensors of one dtype.")
            return other.integer(what)
        if isinstance(other, (float, np.floating)):
            message = f"{what} of a scalar of {self.dtype} and a float"
            refuse("NK609", message, remedy="The other operand is a Python integer or a scalar of the same dtype.")
        if not isinstance(other, (int, np.integer)):
            return None
        if not fits(int(other), self.dtype):
            message = f"{what} of a scalar of {self.dtype} and {other}, which does not fit into {self.dtype}"
            refuse("NK609", message, remedy="Load the number from a tensor of nl.int64 with nisa.scalar_load.")
        return int(other)

    def __neg__(self) -> NkiScalar:
        return self._made(-self.integer("arithmetic"))

    def __pos__(self) -> NkiScalar:
        return self._made(self.integer("arithmetic"))

    # --- comparisons -------------------------------------------------------------------------------------------------

    def _compare(self, other: Any, function: Callable[[int, int], bool]) -> NkiScalar:
        right = self._other(other, "a comparison")
        if right is None:
            return NotImplemented  # type: ignore[no-any-return]
        if self.dtype is int64:
            message = "scalars of int64 are compared; the device has no comparison of 64 bits"
            refuse("NK301", message, remedy="Load the scalar from a tensor of nl.int32.")
        result = NkiScalar(int(function(self.integer("a comparison"), right)), int32, is_comparison=True)
        return result.made_by(made_of(self, other))

    def __lt__(self, other: Whole | NkiScalar) -> NkiScalar:
        return self._compare(other, operator.lt)

    def __le__(self, other: Whole | NkiScalar) -> NkiScalar:
        return self._compare(other, operator.le)

    def __gt__(self, other: Whole | NkiScalar) -> NkiScalar:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Whole | NkiScalar) -> NkiScalar:
        return self._compare(other, operator.ge)

    def __eq__(self, other: object) -> NkiScalar:  # type: ignore[override]
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> NkiScalar:  # type: ignore[override]
        return self._compare(other, operator.ne)

    __hash__ = object.__hash__

    # --- the host ----------------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        thing = "the result of a comparison of scalars" if self.is_comparison else "a scalar"
        message = (
            f"{thing} decides an `if`, a `while`, an `and`, an `or` or a `not`; its value exists only on the device"
        )
        refuse("NK602", message, remedy="Loop on the device: nl.fori_loop(0, scalar, body) runs as often as it says.")

    def _host_side(self) -> NoReturn:
        message = "a scalar is used as a Python number; its value exists only on the device"
        remedy = "Pass the scalar itself as a bound of nl.fori_loop, as scalar_offset=, to nl.ds, or as an index."
        refuse("NK602", message, remedy=remedy)

    __index__ = __int__ = __float__ = __complex__ = _host_side

    def __repr__(self) -> str:
        return f"<NkiScalar {self.dtype}>"


def fits(value: Any, dtype: DType) -> bool:
    """Return whether a value is an integer that ``dtype`` holds."""
    limits = np.iinfo(dtype.dtype)
    return isinstance(value, (int, np.integer)) and bool(limits.min <= value <= limits.max)


def _dtype_of(dtype: DTypeLike | None) -> DType:
    """Return the dtype of a scalar: nl.int32 by default; NK301 for others than that and nl.int64."""
    try:
        found = int32 if dtype is None else as_dtype(dtype)
    except UnknownDType as error:
        refuse("NK301", str(error))
    if found not in (int32, int64):
        refuse("NK301", f"NkiScalar: a scalar is of nl.int32 or nl.int64, not of {found}")
    return found


def _unknown(sign: str) -> Callable[..., NoReturn]:
    """Return the method of an operator that no document has for scalars."""

    def refused(*operands: float | DeviceNumber) -> NoReturn:
        message = f"`{sign}` of a scalar is not documented; scalars have +, - and *"
        not_modelled(message, remedy="Compute the number in a tensor, and load it with nisa.scalar_load.")

    return refused


for _name, _sign in _UNKNOWN_BINARY.items():
    setattr(NkiScalar, f"__{_name}__", _unknown(_sign))
    setattr(NkiScalar, f"__r{_name}__", _unknown(_sign))
for _name, _sign in _UNKNOWN_UNARY.items():
    setattr(NkiScalar, f"__{_name}__", _unknown(_sign))
