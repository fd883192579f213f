"""NK504 for loops on the device that never end: reported at a limit, where a simulation would hang."""

from __future__ import annotations

from nkitools.chip.device_numbers import DeviceNumber
from nkitools.rules.finding import refuse

STILL = 1_000  # turns after which a condition that no instruction has written counts as one that never changes
MOST = 1_000_000  # turns of any loop that a condition ends
_REMEDY = (
    "Let the body compute the condition anew and load it, nisa.register_load(condition, tile), or count in a loop "
    "whose bounds are known, nl.fori_loop."
)


class TurnCount:
    """The turns of a loop whose condition is a number of the device."""

    __slots__ = ("_last", "_still", "_turns")

    def __init__(self) -> None:
        self._turns = self._still = 0
        self._last: tuple[object, tuple[int, ...]] | None = None

    def check(self, what: str, condition: DeviceNumber) -> None:
        """Count a turn. Errors: NK504 for a condition that nothing changes, and for a loop that turns too often."""
        self._turns += 1
        now = (condition.value, condition.sources)
        self._still = self._still + 1 if now == self._last else 0
        self._last = now
        if self._still >= STILL:
            message = f"{what} never ends: its condition is {condition.value}, and no instruction has written it"
            refuse("NK504", f"{message} in {self._turns:,} turns", remedy=_REMEDY)
        if self._turns >= MOST:
            refuse("NK504", f"{what} has turned {MOST:,} times; its condition is {condition.value}", remedy=_REMEDY)
