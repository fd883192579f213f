"""Interleaved programs: after an instruction that touches HBM, and when programs meet, another program may run."""

from __future__ import annotations

from collections.abc import Callable

from nkitools.record.record import Observer, Record
from nkitools.record.rows import Row


class Pauses(Observer):
    """An observer that calls ``pause`` after every instruction with an operand in HBM."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self.pause = pause
        self._touches_hbm: dict[int, bool] = {}  # by plan

    def issued(self, record: Record, row: Row) -> None:
        """Let other programs go on before the next instruction."""
        touches = self._touches_hbm.get(row.plan.id)
        if touches is None:
            touches = any(not access.layout.on_chip for access in row.accesses())
            self._touches_hbm[row.plan.id] = touches
        if touches:
            self.pause()
