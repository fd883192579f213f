"""The refusals of a tensor: Python and NumPy cannot compute with it while the kernel is being traced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from nkitools.chip.argument_types import Number
from nkitools.chip.core import CORE
from nkitools.chip.view_checks import describe
from nkitools.facts import versions
from nkitools.rules.finding import not_modelled, refuse, report

_NUMBERS = (int, float, np.generic)

if TYPE_CHECKING:
    import numpy.typing as npt

    from nkitools.chip.strided_view import StridedView


def no_address() -> NoReturn:
    """Refuse ``nl.NkiTensor(address=...)``: NK607, and NK609 before the NKI version that has the argument."""
    core, row = CORE.get(), versions.by_full_name()["nki.language.NkiTensor.__init__(address)"]
    if core is not None and not row.is_in(core.language):
        message = f"nl.NkiTensor: the argument `{row.parameter}` {row.absence(core.language)}"
        refuse("NK609", message, remedy=row.instead)
    not_modelled("nl.NkiTensor: `address` is not modelled", remedy="Use nl.ndarray(..., address=...).")


class NotAValue:
    """Refuses truth values (NK602), and iteration, NumPy and Python's operators (NK601), by the name of the tensor.

    The only truth value is that of a comparison in an ``assert`` (`nkitools.language.assertion`).

    ``==`` compares identity, as in Python (kernels compare an optional tensor with None); a comparison with a number
    would mean the elements, and is refused.
    """

    __slots__ = ()

    def _refuse(self, rule: str, before: str, after: str, remedy: str = "") -> NoReturn:
        refuse(rule, f"{before}{describe(cast('StridedView', self))}{after}", about=(self,), remedy=remedy)

    def __bool__(self) -> bool:
        tensor = cast("StridedView", self)
        truth = tensor.storage.truth
        found = None if truth is None else truth(tensor)
        if found is None and (truth is not None or not self._is_given()):
            self._refuse("NK602", "the truth value of ", " is asked for; its elements exist only when the kernel runs")
        return found is None or found

    def _is_given(self) -> bool:
        """Return whether the truth value asks if a whole tensor was given, and report NK621 then.

        It does of a tensor in HBM, and of a tile on chip that comes from an attribute (``if params.expert_index``).
        """
        tensor, core = cast("StridedView", self), CORE.get()
        if tensor.shape != tensor.storage.shape:
            return False
        if tensor.storage.on_chip and (core is None or not core.record.tests_attribute()):
            return False
        message = (
            f"the truth value of {describe(tensor)} is asked for: it is True, as the tensor was given; the documents "
            "have no truth value of tensors, and compilers have taken it"
        )
        report("NK621", message, about=(tensor,), remedy="Write `is not None`.")
        return True

    def _no_number(self) -> NoReturn:
        remedy = (
            "Pass the tile itself as an operand (nl.multiply(t, s), operand0 of nisa.tensor_scalar); for an index load "
            "the number with nisa.register_load or nisa.scalar_load."
        )
        self._refuse("NK602", "", " is used as a Python number; its elements exist only when the kernel runs", remedy)

    __int__ = __float__ = __complex__ = __index__ = _no_number

    def __iter__(self) -> NoReturn:
        self._refuse("NK601", "", " cannot be iterated over")

    # Said here as well, since Python takes an __iter__ that fails for one that is missing.
    def __contains__(self, item: object) -> bool:
        self.__iter__()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        self._refuse("NK601", "NumPy cannot work on ", " inside a kernel; the chip would not run it")

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> NoReturn:
        """Refuse NumPy's functions at the author's line, before NumPy itself asks for an array."""
        self.__array__()

    def __format__(self, form: str) -> str:
        """Return the text of the tensor; a form is for numbers (NK602)."""
        return str(self) if not form else self._no_number()

    def __len__(self) -> int:
        self._refuse("NK601", "`len` is asked of ", "; its elements cannot be iterated over", "Write x.shape[0].")

    def __reversed__(self) -> NoReturn:
        self.__iter__()

    __next__ = __reversed__

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        self._refuse("NK601", "", " is called", "Index it by brackets: x[0:128, 0:512].")

    def __delitem__(self, key: object) -> NoReturn:
        self._refuse("NK601", "`del` is asked of elements of ", "", "Leave elements out by a slice: x[:, 1:].")

    def _no_operator(self, *others: StridedView | Number | np.generic) -> NoReturn:
        self._refuse(
            "NK601",
            "Python's arithmetic operators do not work on ",
            " in the modern dialect",
            remedy="Call nl.add, nl.subtract, nl.multiply, … or nisa.tensor_tensor / nisa.tensor_scalar.",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_operator
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _no_operator
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = _no_operator
    __rshift__ = __rrshift__ = __neg__ = __pos__ = __abs__ = __invert__ = _no_operator
    __divmod__ = __rdivmod__ = __round__ = __trunc__ = __floor__ = __ceil__ = _no_operator

    def _no_order(self, *others: StridedView | Number | np.generic) -> NoReturn:
        """Refuse a comparison: NK602 if its truth value decides something, else NK601 for the operator."""
        core = CORE.get()
        if core is not None and core.record.tests_comparison():
            self._refuse("NK602", "a comparison of ", " decides here; its elements exist only when the kernel runs")
        self._no_operator(*others)

    __lt__ = __le__ = __gt__ = __ge__ = _no_order

    def __eq__(self, other: object) -> Any:
        return self._no_order(other) if isinstance(other, _NUMBERS) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._no_order(other) if isinstance(other, _NUMBERS) else NotImplemented

    __hash__ = object.__hash__
