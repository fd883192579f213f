"""The record as NumPy columns, for questions about a whole run after its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, chain

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.numerics import Array
from nkitools.record import rows
from nkitools.record.instruction_record import RecordedPlan
from nkitools.record.record import Record

_MOST = np.iinfo(np.int32).max
FEW = 4096  # up to so many numbers become a set in Python sooner than NumPy is called


def distinct(numbers: Array) -> set[int]:
    """Return the distinct ones of whole numbers."""
    if numbers.size <= FEW:
        return set(numbers.tolist())
    lowest = int(numbers.min())
    if int(numbers.max()) - lowest > 4 * numbers.size:
        return set(np.unique(numbers).tolist())
    is_there = np.zeros(int(numbers.max()) - lowest + 1, np.bool_)  # the storages of a run follow each other
    is_there[numbers - lowest] = True
    return set((is_there.nonzero()[0] + lowest).tolist())


class Columns:
    """The instructions of a run in their order, and their operands one after the other; read when asked for."""

    def __init__(self, record: Record) -> None:
        self.record = record
        record.close()  # an instruction that waits for its assignment is one of the run, too

    @cached_property
    def starts(self) -> Array:
        """Return the index at which each instruction's row begins."""
        found = rows.head_places(self._rows)
        self.record.keep_starts(found)
        return found

    @cached_property
    def heads(self) -> Array:
        """Its first word, one number for each pair of plan and site."""
        return self._rows[self.starts]

    @cached_property
    def plans(self) -> Array:
        """The number of its plan."""
        return rows.plan_of(self.heads)

    @cached_property
    def sites(self) -> Array:
        """The number of each instruction's site; -1 for none."""
        return rows.site_of(self.heads)

    @cached_property
    def _rows(self) -> Array:
        # Before the end a copy: while NumPy looks at an array.array itself, that cannot grow.
        words = self.record.row_words
        return np.frombuffer(words if self.record.has_ended else words.tobytes(), np.int64)

    @cached_property
    def first_operands(self) -> Array:
        """Return the number of the first operand of each instruction, and how many operands there are."""
        bounds = np.empty(self.starts.size + 1, np.int64)
        bounds[:-1], bounds[-1] = self.starts, self._rows.size
        return (bounds - np.arange(bounds.size)) // rows.OPERAND_WORDS

    @cached_property
    def positions(self) -> Array:
        """Return each operand's instruction."""
        # How many instructions begin before it; a fifth of the time of np.repeat.
        begun = np.bincount(self.first_operands, minlength=self.first_operands[-1] + 1)
        found = np.cumsum(begun[:-1], dtype=np.int32)
        found -= 1
        return found

    @cached_property
    def _operands(self) -> tuple[Array, Array, Array]:
        """Return storage, layout and first byte of each operand, in half of the memory of the rows."""
        is_operand = np.ones(self._rows.size, np.bool_)
        is_operand[self.starts] = False
        words, byte_offsets = self._rows[is_operand].reshape(-1, rows.OPERAND_WORDS).T
        offset_dtype = np.int64 if byte_offsets.max(initial=0) > _MOST else np.int32
        return *rows.narrow_columns(words), byte_offsets.astype(offset_dtype)

    @property
    def byte_offsets(self) -> Array:
        """The first byte of its view."""
        return self._operands[2]

    @property
    def storages(self) -> Array:
        """Its storage."""
        return self._operands[0]

    @property
    def layouts(self) -> Array:
        """Its layout, by number."""
        return self._operands[1]

    @cached_property
    def written_storages(self) -> set[int]:
        """Return the storages that instructions write."""
        return distinct(self.storages[self.writes])

    @cached_property
    def writes(self) -> Array:
        """Return for each operand whether its instruction writes it."""
        return self.of_plans(lambda plan: plan.written)

    @cached_property
    def _known(self) -> list[tuple[int, RecordedPlan]]:
        """Return the plans of the run in the order of their numbers."""
        return [(number, each.plan) for number, each in sorted(self.record.plans.items())]

    @cached_property
    def which(self) -> Array:
        """Return the place of each instruction's plan among those of the run, in the order of their numbers."""
        return np.searchsorted([number for number, _ in self._known], self.plans)

    def first_of_plans(self) -> list[tuple[RecordedPlan, int]]:
        """Return the plans of the run by their numbers, with the first instruction of each; -1 for none."""
        firsts = np.full(len(self._known), -1, np.int64)
        firsts[self.which[::-1]] = np.arange(self.which.size)[::-1]
        return [(plan, first) for (_, plan), first in zip(self._known, firsts.tolist(), strict=True)]

    def of_each_plan(self, answer: Callable[[RecordedPlan], int], dtype: type[np.generic] = np.bool_) -> Array:
        """Return ``answer(plan)`` for each instruction."""
        return np.array([answer(plan) for _, plan in self._known], dtype)[self.which]

    @cached_property
    def known_layouts(self) -> list[Layout]:
        """Return the layouts of all operands, each once, in the order of their numbers."""
        return [LAYOUTS[number] for number in sorted(distinct(self.layouts))]

    @cached_property
    def _which_layouts(self) -> Array:
        return np.searchsorted([each.id for each in self.known_layouts], self.layouts)

    def of_layouts(self, answer: Callable[[Layout], int]) -> Array:
        """Return ``answer(layout)`` for each operand."""
        return np.array([answer(each) for each in self.known_layouts], np.int64)[self._which_layouts]

    def of_plans(self, answer: Callable[[RecordedPlan], Sequence[int]], dtype: type[np.generic] = np.bool_) -> Array:
        """Return ``answer(plan)`` for each instruction, joined: ``answer`` gives a value for each operand."""
        if not self.plans.size:
            return np.zeros(0, dtype)
        answers = [answer(plan) for _, plan in self._known]
        ends = np.array(list(accumulate(map(len, answers))))
        # The last of an instruction's operands has the last answer of its plan.
        moved = (ends[self.which] - self.first_operands[1:]).astype(np.int32)[self.positions]
        moved += np.arange(moved.size, dtype=np.int32)  # half of the memory of int64
        return np.fromiter(chain.from_iterable(answers), dtype)[moved]

    def in_order(self, operands: Array) -> tuple[Array, Array, Array, Array]:
        """Return columns of the operands in another order in each instruction; ``operands``: their numbers there.

        They are: its place in the rows, storage, layout, and first byte.
        """
        places = rows.operand_place(self.starts[self.positions], operands)
        words, byte_offsets = self._rows[places], self._rows[places + 1]
        storages, layouts = rows.storage_column(words), rows.layout_column(words)
        return places, storages, layouts, byte_offsets


def adds(plan: RecordedPlan) -> bool:
    """Return whether an instruction adds to its destination, or keeps some of its old values."""
    return bool(not plan.overwrites if plan.engine == "tensor" else plan.wants_fresh)


def program_numbers(record: Record, positions: Array) -> Array:
    """Return the number of the program that issued each instruction, in the order of the programs' indices."""
    numbers = {program: number for number, program in enumerate(sorted({each for _, each in record.programs}))}
    return np.array([numbers[each] for _, each in record.programs])[programs_at(record, positions)]


def programs_at(record: Record, positions: Array) -> Array:
    """Return the index in ``record.programs`` of the program that issued each instruction; -1 if unknown."""
    begun = np.array([position for position, _ in record.programs], np.int64)
    return np.asarray(np.searchsorted(begun, positions, "right") - 1)
