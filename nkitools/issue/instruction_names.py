"""Names of issued instructions, for schedules, and the loops on the device that they are issued in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nkitools.chip.core import Core
from nkitools.facts.light_classes import dataclass
from nkitools.record.device_turns import LoopTurns
from nkitools.rules.finding import refuse


@dataclass(eq=False, slots=True)
class DeviceLoop:
    """A loop on the device whose body is running: one body, however many turns."""

    around: DeviceLoop | None
    site: int  # the author's line
    turns: int = 0  # that have ended
    repeats_from: int = -1  # the position in the record where its second turn began

    @classmethod
    @contextmanager
    def begun(cls, core: Core, site: int) -> Iterator[DeviceLoop]:
        """Provide the loop while it runs; the record keeps how often it has turned."""
        record = core.record
        loop = core.device_loop = cls(core.device_loop, site)
        try:
            yield loop
        finally:
            core.device_loop = loop.around
            begin = loop.repeats_from if loop.turns > 1 else record.count
            record.device_loops.append(LoopTurns(core.program, loop.path, loop.turns, begin, record.count))

    @property
    def path(self) -> tuple[int, ...]:
        """Return the sites of the loops around this one, and its own."""
        return (self.site,) if self.around is None else (*self.around.path, self.site)

    @property
    def first(self) -> bool:
        """Return whether this is the first turn."""
        return not self.turns

    def end_turn(self, core: Core) -> None:
        """Count a turn that has ended."""
        self.turns += 1
        if self.turns == 1:
            self.repeats_from = core.record.count

    @property
    def is_first(self) -> bool:
        """Return whether this is the first turn of the loop and of all loops around it."""
        return self.first and (self.around is None or self.around.is_first)

    def holds(self, other: DeviceLoop | None) -> bool:
        """Return whether ``other`` is this loop or lies inside of it."""
        while other is not None:
            if other is self:
                return True
            other = other.around
        return False


def label(core: Core, instruction: Any, name: str, position: int) -> None:
    """Keep the name that the author has given to the instruction at ``position`` (-1: skipped). Errors: NK609."""
    if not isinstance(name, str):
        refuse(
            "NK609",
            f"nisa.{instruction.name}: argument `name` must be a string, it is {type(name).__name__}",
            remedy=instruction.call_form,
        )
    if core.device_loop is None or core.device_loop.is_first:
        core.record.labels.append((core.program, position, name))
