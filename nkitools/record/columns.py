"""The record by columns: what questions about a whole run are asked of, with NumPy, once it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record import rows
from nkitools.record.record import Record
from nkitools.record.rows import RecordedPlan


class Columns:
    """The instructions of a run in their order, and their operands one after the other; read when asked for."""

    def __init__(self, record: Record) -> None:
        self.record = record
        record.close()  # an instruction that waits for its assignment is one of the run, too

    @cached_property
    def starts(self) -> Array:
        """Return where each instruction's row begins."""
        return self.record.row_starts()

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
        """The number of its site; -1 for none."""
        return rows.site_of(self.heads)

    @cached_property
    def _rows(self) -> Array:
        # A copy: while NumPy looks at an array.array itself, that cannot grow.
        return np.array(self.record.row_words, np.int64)

    @cached_property
    def _counts(self) -> Array:
        """Return each instruction's number of operands."""
        return np.asarray(np.diff(self.starts, append=self._rows.size) // rows.OPERAND_WORDS)

    @cached_property
    def first_operands(self) -> Array:
        """Return the number of the first operand of each instruction, and how many operands there are."""
        return np.concatenate(([0], np.cumsum(self._counts)))

    @cached_property
    def positions(self) -> Array:
        """Return each operand's instruction."""
        return np.repeat(np.arange(self.starts.size), self._counts)

    @cached_property
    def _operands(self) -> Array:
        """Its two words."""
        is_operand = np.ones(self._rows.size, np.bool_)
        is_operand[self.starts] = False
        return self._rows[is_operand].reshape(-1, rows.OPERAND_WORDS)

    @cached_property
    def _words(self) -> Array:
        return np.ascontiguousarray(self._operands[:, 0])

    @cached_property
    def byte_offsets(self) -> Array:
        """The first byte of its view."""
        return np.ascontiguousarray(self._operands[:, 1])

    @cached_property
    def storages(self) -> Array:
        """Its storage."""
        return rows.storage_column(self._words)

    @cached_property
    def layouts(self) -> Array:
        """Its layout, by number."""
        return rows.layout_column(self._words)

    @cached_property
    def written_storages(self) -> set[int]:
        """Return the storages that instructions write."""
        return set(self.storages[self.of_plans(lambda plan: plan.written)].tolist())

    def of_plans(self, answer: Callable[[RecordedPlan], Sequence[int]], dtype: type[np.generic] = np.bool_) -> Array:
        """Return what ``answer`` says of its plan: a truth value, or a number, for each operand."""
        answers = [value for planned in self.record.plans.values() for value in answer(planned.plan)]
        return np.asarray(np.array(answers, dtype)[self._in_plans])

    @cached_property
    def _in_plans(self) -> Array:
        """Its place among the operands of all plans, one plan after the other."""
        plans = self.record.plans
        first = np.zeros(max(plans, default=-1) + 1, np.int64)
        counts = [len(planned.plan.written) for planned in plans.values()]
        first[list(plans)] = np.cumsum([0, *counts[:-1]]) if plans else 0
        before = np.cumsum(self._counts) - self._counts
        shift = first[self.plans] - before
        return np.asarray(np.arange(self.positions.size) + np.repeat(shift, self._counts))


def adds(plan: RecordedPlan) -> bool:
    """Return whether an instruction adds to what its destination holds, or leaves some of that as it was."""
    return bool(not plan.overwrites if plan.engine == "tensor" else plan.wants_fresh)


def programs_at(record: Record, positions: Array) -> Array:
    """Return which of the entries of ``record.programs`` issued each instruction; -1 where none is known."""
    begun = np.array([position for position, _ in record.programs], np.int64)
    return np.asarray(np.searchsorted(begun, positions, "right") - 1)
