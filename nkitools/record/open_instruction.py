"""An executed instruction whose destination is not known yet.

A call of the legacy dialect returns its result as a value. ``tile[...] = nl.load(x)`` is one DMA into ``tile``: the
instruction of the call stays open until the assignment names the destination. Any other event closes it with a new tile
as its destination: the next instruction, a print, the turn of another program, the kernel's end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from functools import cached_property
from typing import Any

import numpy as np

from nkitools.chip.memory import Storage
from nkitools.facts.light_classes import dataclass
from nkitools.record.beside_rows import BesideRows, OperandPart
from nkitools.record.instruction_record import RecordedPlan
from nkitools.record.loop_counters import Moment, moment_of
from nkitools.record.rows import Rows, counters_of, is_destination, layout_column, operand_count, with_destination
from nkitools.record.source_sites import author_frame

_new = object.__new__


@dataclass(eq=False)
class OpenInstruction:
    """The last instruction of a call that returns a value, until the next one begins.

    Fields that rarely change are defaults of the class, since an object is made for each value.
    """

    plan: Any  # None: the call has issued nothing, or nothing that may write elsewhere
    site: int
    operands: list[int]  # their words
    counters: int | tuple[int, ...]  # as `counters_of` returns them
    tile: Storage | None = None  # that the call returns: alive until the instruction is in the record
    is_only_writer: bool = False  # no other instruction of the call has written to that tile
    is_closed: bool = False
    moment: Moment | None = None  # at which it was issued, where observers look on
    parts: Sequence[OperandPart] = ()  # while the value goes where it was assigned


class OpenRows(Rows):
    """Rows whose last instruction may be open."""

    # What most runs leave as it is stands in the class, see `Record`.
    observers: Sized = ()  # whether there are any; `Record` names their kinds
    moment: Moment | None = None  # while an instruction is added that was open: when it was issued
    open: OpenInstruction | None = None
    _assigned: OpenInstruction | None = None  # its value is being copied to where it was assigned
    _value: Storage | None = None  # the tile that the running call returns
    _writers = 0  # how many instructions have written to it
    only_adds = True  # whether `commit` does nothing but `add` the next instruction

    @cached_property
    def beside(self) -> BesideRows:
        """Return the facts beside the rows."""
        return BesideRows()

    def commit(self, plan: RecordedPlan, site: int, operands: list[int]) -> None:
        """Take an instruction: its plan, the author's site, the words of its operands.

        It is added to the record, or kept open if it writes to the tile that the running call returns.
        """
        if self.only_adds:
            self.add(plan, site, operands)
        elif self._assigned is not None:
            self._redirect(self._assigned, operands)
        elif self._value is not None and is_destination(self._value.id, operands):
            self._open(plan, site, operands, self._value)
        else:
            self.add_shown(plan, site, operands)

    def add_shown(self, plan: RecordedPlan, site: int, operands: list[int]) -> None:
        """Add an instruction and show it to the observers, which `Record` has."""
        self.add(plan, site, operands)

    @property
    def count(self) -> int:
        """Number of instructions issued."""
        if self.open is not None:
            self.close()
        return len(self.states)

    def layout_numbers(self) -> set[int]:
        """Return the numbers of the layouts in the rows and of indices beside them, and maybe others."""
        return super().layout_numbers() | set(layout_column(np.array(self.beside.indices, np.int64)).tolist())

    @property
    def next_position(self) -> int:
        """The position that the instruction which is being carried out will have."""
        return len(self.states)

    def begin_value(self, tile: Storage) -> None:
        """Keep the instructions open that write to a tile: the one that the running call returns."""
        self._value = tile
        self._writers = 0
        self.only_adds = False

    def end_value(self, tile: Storage, *, is_masked: bool) -> OpenInstruction | None:
        """Return the open instruction of a call that returns a tile; None if there is none.

        Under a mask there always is one: a following assignment takes over only the lanes that the mask left.
        """
        self._value = None
        self.only_adds = not self.observers
        if self.open is not None and self.open.tile is tile:
            return self.open
        if is_masked:
            self.close()
            self.open = OpenInstruction(None, -1, [], counters_of(self), is_closed=True)
            return self.open
        return None

    def _open(self, plan: RecordedPlan, site: int, operands: list[int], tile: Storage) -> None:
        """Keep an instruction open that has written to the tile of a call."""
        self.check_ages(plan, operands)
        if self.open is not None:
            self.close()
        self._writers += 1
        self.open = opened = _new(OpenInstruction)
        opened.plan = plan
        opened.site = site
        opened.operands = operands
        opened.counters = counters_of(self)
        opened.tile = tile
        opened.is_only_writer = self._writers == 1
        if self.observers:
            opened.moment = moment_of(author_frame(2))

    def begin_instruction(self) -> None:
        """Close the open instruction: the next one begins."""
        opened, self.open = self.open, None
        if opened is None or opened.is_closed:
            return
        if self.observers or opened.counters != counters_of(self):
            self._add(opened)
        else:
            opened.is_closed = True
            self.add(opened.plan, opened.site, opened.operands)

    def close(self) -> None:
        """Add the open instruction: it has written to a tile of its own."""
        opened = self.open
        if opened is not None and not opened.is_closed:
            self._add(opened)

    def assign(self, copy: Callable[[], object]) -> bool:
        """Give the open instruction the destination of ``copy``, an instruction that copies its value, and close it.

        Returns False if the copy was refused: the destination is then a new tile.
        """
        opened, self.open = self.open, None
        assert opened is not None
        opened.parts = self.beside.take_parts(len(self.states), operand_count(opened.operands))
        self._assigned, self.only_adds = opened, False
        try:
            copy()
        finally:
            is_refused, self._assigned = self._assigned is not None, None
            self.only_adds = not self.observers
            if is_refused:
                self._add(opened, opened.parts)
        return not is_refused

    def _redirect(self, opened: OpenInstruction, operands: list[int]) -> None:
        """Close an instruction whose value was copied: its destination becomes that of the copy, which has these
        operands.
        """
        self._assigned = None
        opened.operands = with_destination(opened.operands, operands)
        copied = self.beside.take_parts(len(self.states), operand_count(operands))
        self._add(
            opened, [each for each in opened.parts if each.operand] + [each for each in copied if not each.operand]
        )

    def _add(self, opened: OpenInstruction, parts: Sequence[OperandPart] = ()) -> None:
        if parts:
            self.beside.put_parts(len(self.states), parts)
        opened.is_closed = True
        counters, self.moment = counters_of(self), opened.moment
        self.count_with(opened.counters)
        self.add_shown(opened.plan, opened.site, opened.operands)
        self.count_with(counters)
        self.moment = None
