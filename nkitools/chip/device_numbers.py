"""Numbers that the device computes while a kernel runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from nkitools.rules.finding import refuse

Other = TypeVar("Other")


class DeviceNumber:
    """A number that the device computes: it bounds loops and addresses elements, and the host never sees it."""

    __slots__ = ("is_written", "readers", "sources", "value")

    def __init__(self, state: float | None = None) -> None:
        self.value: Any = state
        self.sources: tuple[int, ...] = ()  # the instructions that made the value, by their positions in the record
        self.readers: list[int] = []  # the instructions that have read the value since it was written
        self.is_written = False  # by an instruction

    def made_by(self, sources: tuple[int, ...]) -> Self:
        """Return the number itself, once it names the instructions that made its value."""
        self.sources = sources
        return self

    def read(self, what: str) -> float:
        """Return the value. ``what``: its use, for the message. Errors: NK401 (a register that never got a value)."""
        if self.value is None:
            remedy = "Give it a value first: nisa.register_move(register, 0), or nisa.register_load from a tensor."
            refuse("NK401", f"{what} reads a register that was never given a value", remedy=remedy)
        value: float = self.value
        return value

    def integer(self, what: str) -> int:
        """Return the value as an int. ``what``: its use, for the message.

        Errors: NK301 (a float, whose bits would be taken as an integer), NK401.
        """
        value = self.read(what)
        if not isinstance(value, int):
            refuse("NK301", f"{what} needs an integer, the register holds {value}, loaded from a float tensor")
        return value

    def check_width(self, what: str) -> None:
        """Refuse an integer of 64 bits (NK301); only scalars have so many."""

    def short_integer(self, what: str) -> int:
        """Return the value as one of 32 bits (NK301)."""
        self.check_width(what)
        return self.integer(what)

    def operand(self) -> float:
        """Return the value for the arithmetic of registers."""
        return self.read("register arithmetic")


class DeviceArithmetic(DeviceNumber, Generic[Other]):
    """A number with ``+``, ``-`` and ``*``; ``Other`` are the types of the other operand."""

    __slots__ = ()

    def _compute(self, other: Other, function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Self:
        """Return ``function`` of this number and another; ``swapped``: this number is the right operand."""
        raise NotImplementedError

    def __add__(self, other: Other) -> Self:
        return self._compute(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Other) -> Self:
        return self._compute(other, operator.sub)

    def __rsub__(self, other: Other) -> Self:
        return self._compute(other, operator.sub, swapped=True)

    def __mul__(self, other: Other) -> Self:
        return self._compute(other, operator.mul)

    __rmul__ = __mul__


def made_of(*operands: Any) -> tuple[int, ...]:
    """Return the instructions that computed some device numbers; () for numbers of the host."""
    numbers = (each for each in operands if isinstance(each, DeviceNumber))
    return tuple(sorted({source for number in numbers for source in number.sources}))
