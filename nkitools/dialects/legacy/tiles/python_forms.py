"""Operators of Python and functions of NumPy that tiles do not have: refused, with what to write in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.facts import versions
from nkitools.rules.finding import refuse

_ELEMENT = "Compute on the tile itself; to look at a value, nl.device_print it, or return it from the kernel."

# What NumPy calls where a scalar of it stands on the left of an operator, and the method of the tile on the right.
_REFLECTED = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.power: "__rpow__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.matmul: "__rmatmul__",
}


def _no_operator(form: str, remedy: str) -> Callable[..., NoReturn]:
    """Return the method of an operator or function of Python that is refused (NK601)."""

    def refused(self: PythonForms, *others: object, **named: object) -> NoReturn:
        message = f"`{form}` is asked of {describe(self.base)}; tiles of neuronxcc.nki do not have it"
        refuse("NK601", message, about=(self.base,), remedy=remedy)

    return refused


_NO_MEMBERS = _no_operator("in", "Compare the elements: nl.equal(x, y), and nl.max over the free dimension.")


class PythonForms:
    """Refuses what Python and NumPy would do with an object of numbers. Errors: NK601, NK602."""

    __slots__ = ()
    base: NkiTensor
    is_runtime = True  # its elements are no Python integers, though it has an __index__

    __floordiv__ = _no_operator("//", "Divide and round down: nl.floor(nl.divide(x, y)).")
    __rfloordiv__ = __floordiv__
    __mod__ = _no_operator("%", "Call nl.mod(x, y).")
    __rmod__ = __mod__
    __divmod__ = __rdivmod__ = _no_operator("divmod", "Divide and round down: nl.floor(nl.divide(x, y)).")
    __matmul__ = _no_operator("@", "Multiply matrices by nl.matmul(x, y), or by nisa.nc_matmul.")
    __rmatmul__ = __matmul__
    __pos__ = _no_operator("+x", "Leave the sign out.")
    __round__ = _no_operator("round", "Round by nl.floor(x), or by nl.copy(x, dtype=nl.int32), to the nearest.")
    __floor__ = _no_operator("math.floor", "Round by nl.floor(x).")
    __ceil__ = _no_operator("math.ceil", "Round by nl.ceil(x).")
    __trunc__ = _no_operator("math.trunc", "Round by nl.trunc(x).")
    __call__ = _no_operator("x(...)", "Index it by brackets: x[0:128, 0:512].")
    __next__ = _no_operator("next", "Index it in a loop.")
    __delitem__ = _no_operator("del x[...]", "Leave elements out by a slice: x[:, 1:].")
    __len__ = _no_operator("len", "Take the size of a dimension: x.shape[0].")

    def _no_number(self) -> NoReturn:
        message = f"{describe(self.base)} is used as a Python number; its elements exist only when the kernel runs"
        refuse("NK602", message, about=(self.base,), remedy=_ELEMENT)

    __int__ = __float__ = __complex__ = __index__ = _no_number

    def __contains__(self, item: object) -> NoReturn:
        _NO_MEMBERS(self)

    def __format__(self, form: str) -> str:
        """Return the text of the tile; a form is for numbers (NK602)."""
        return str(self) if not form else self._no_number()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object) -> object:
        """Compute ``number <operator> tile`` for a scalar of NumPy; refuse the other functions of NumPy (NK601)."""
        reflected = _REFLECTED.get(ufunc) if method == "__call__" and not kwargs else None
        number = inputs[0]
        if reflected is None or not isinstance(number, (np.generic, np.ndarray)) or number.ndim:
            self._no_numpy(ufunc.__name__)
        return getattr(inputs[1], reflected)(np.asarray(number)[()])

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> NoReturn:
        """Refuse a function of NumPy (NK601)."""
        self._no_numpy(function.__name__)

    def _no_numpy(self, name: str) -> NoReturn:
        own = (
            f"Call nl.{name}"
            if name in versions.names_of("neuronxcc.nki.language")
            else "Compose it of functions of neuronxcc.nki.language"
        )
        message = f"NumPy's `{name}` cannot work on {describe(self.base)} inside a kernel; the chip would not run it"
        refuse("NK601", message, about=(self.base,), remedy=f"{own}; NumPy computes what is known before the run.")
