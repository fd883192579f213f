"""Virtual registers: scalars that exist while a kernel runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from nkitools.chip.core import CORE
from nkitools.chip.device_numbers import DeviceArithmetic, DeviceNumber, made_of
from nkitools.chip.endless_loops import TurnCount
from nkitools.chip.version_notices import report_notice
from nkitools.facts.versions import by_full_name, notice
from nkitools.rules.finding import refuse

_INT32 = (-(1 << 31), (1 << 32) - 1)
_DIVISIONS = (operator.floordiv, operator.mod)
_STEER = "Steer loops with nl.fori_loop and nl.while_loop, addresses with scalar_offset= or nl.ds."


class VirtualRegister(DeviceArithmetic["int | DeviceNumber"]):
    """A 32-bit scalar of an engine's sequencer (``nki.isa.VirtualRegister``, NKI 0.6).

    ``state``: the first value, an integer from -2**31 to 2**32 - 1 or a float (NK609); with None an instruction must
    write the register before it is read (NK401). ``frozen``: no instruction may write it (NK601), as the counter of a
    dynamic loop.

    A register bounds loops (``nl.fori_loop``, ``nl.while_loop``; before NKI 0.7, which refuses them as NK608, also
    ``nl.dynamic_range`` and ``while register:``) and addresses elements (``scalar_offset=``,
    ``nl.ds``, an index). Python does not see the value: converting it and comparing it with a number or another
    register is refused (NK602, before NKI 0.7 NK601), and so is its truth value anywhere but in ``while register:``
    (NK602). ``+``, ``-`` and ``*`` with integers, registers and 32-bit scalars give new registers, and so do
    ``register // x`` and ``register % x``: undocumented, but public kernels compute addresses that way. A result that
    does not fit into the register is NK609, and so is a division by 0.
    """

    __slots__ = ("_turns", "frozen")

    def __init__(self, state: float | None = None, frozen: bool = False) -> None:
        if state is not None:
            check_value("VirtualRegister", state)
        super().__init__(state)
        self.frozen = frozen
        self._turns: TurnCount | None = None  # of the `while register:` that runs

    def write(self, what: str, value: float) -> None:
        """Set the value of the register, without a check of its type and range. ``what``: the name of the writer, for
        the message. Errors: NK601 (a frozen register, such as the counter of a dynamic loop).
        """
        if self.frozen:
            refuse("NK601", f"{what} writes the counter of a dynamic loop, which is frozen")
        self.value = value

    def __bool__(self) -> bool:
        core = CORE.get()
        if core is None or not core.record.tests_while():
            message = "the truth value of a register is asked for; its value exists only on the device"
            refuse("NK602", message, remedy=_STEER)
        row = by_full_name()["nki.while register:"]
        if not row.is_in(core.language):
            refuse("NK608", f"{row.shown} {row.absence(core.language)}", remedy=row.instead)
        report_notice(notice(row, core.language))
        if self.read("a loop condition") == 0:
            self._turns = None
            return False
        self._turns = self._turns or TurnCount()
        self._turns.check("`while register:`", self)
        return True

    def _compute(
        self, other: int | DeviceNumber, function: Callable[[Any, Any], Any], *, swapped: bool = False
    ) -> VirtualRegister:
        if isinstance(other, DeviceNumber):
            right = other.operand()
        elif isinstance(other, int):
            right = other
        else:
            return NotImplemented
        left = self.operand()
        if right == 0 and function in _DIVISIONS:
            refuse("NK609", "a register is divided by 0")
        result = VirtualRegister(function(right, left) if swapped else function(left, right))
        return result.made_by(made_of(self, other))

    def __floordiv__(self, other: int | DeviceNumber) -> VirtualRegister:
        return self._compute(other, operator.floordiv)

    def __mod__(self, other: int | DeviceNumber) -> VirtualRegister:
        return self._compute(other, operator.mod)

    def _host_side(self, *args: float | VirtualRegister) -> NoReturn:
        message = "a register is used in a Python expression; its value exists only on the device"
        core = CORE.get()
        if core is not None and core.language.traced:
            refuse("NK602", message, remedy=_STEER)
        remedy = "Steer loops with nl.dynamic_range or `while register:`, addresses with scalar_offset= or nl.ds."
        refuse("NK601", message, remedy=remedy)

    __index__ = __int__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = _host_side

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, (int, float, VirtualRegister)):
            self._host_side()
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"VirtualRegister({self.value}{', frozen' if self.frozen else ''})"


def check_value(what: str, value: float) -> None:
    """NK609: a register holds a 32-bit number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse("NK609", f"{what}: a register holds a number, it is given {type(value).__name__}")
    if isinstance(value, int) and not _INT32[0] <= value <= _INT32[1]:
        refuse("NK609", f"{what}: {value} does not fit into a 32-bit register")
