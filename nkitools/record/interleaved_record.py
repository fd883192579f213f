"""The record of a run whose programs are interleaved: after an instruction that touches HBM others may go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkitools.record.rows import layouts_of
from nkitools.record.shared_hbm_record import SharedRecord


class PausingRecord(SharedRecord):
    """A record that calls ``pause`` after every instruction with an operand in HBM, where programs meet each other."""

    def __init__(self) -> None:
        super().__init__()
        self.pause: Callable[[], None] = lambda: None
        self._touches_hbm: dict[int, bool] = {}
        self._latest: dict[tuple[int, ...], int] = {}

    def issued(self, plan: Any, site: int, operands: list[int]) -> None:
        """Add an instruction; others may go on before the next one."""
        self._latest[self.programs[-1][1]] = len(self.states)
        super().issued(plan, site, operands)
        touches = self._touches_hbm.get(plan.id)
        if touches is None:
            touches = any(not layout.on_chip for layout in layouts_of(operands))
            self._touches_hbm[plan.id] = touches
        if touches:
            self.pause()

    @property
    def latest(self) -> int:
        """Position of the last instruction that the program that runs has issued."""
        return self._latest.get(self.programs[-1][1], -1)
