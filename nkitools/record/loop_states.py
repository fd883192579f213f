"""The iterations of a run's loops, numbered in the order in which they began: the loop state of an instruction."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LoopStates:
    """The loop states of a run. Consecutive states of one loop share a row, to keep long loops small.

    A row has the state around the loop, the loop's site, the counter of the row's first state, and the loop's step.
    """

    def __init__(self) -> None:
        self.count = 0
        self.firsts = array("q")  # the first state of each row
        self.rows = array("q")
        # What the last row goes on with; () where a loop that has counted on by itself (`Record.iterations`) has it.
        self.go_on: tuple[int, ...] = ()

    def enter(self, parent: int, site: int, value: int, step: int) -> int:
        """Return the state of an iteration that begins now."""
        state = self.count
        self.count = state + 1
        entered = (parent, site, value, step)
        if entered != self.go_on:
            self.firsts.append(state)
            self.rows.extend(entered)
        self.go_on = (parent, site, value + step, step)
        return state

    def at(self, state: int) -> tuple[int, int, int]:
        """Return the state around a loop (-1: none), the loop's site, and its counter."""
        first, _, parent, site, value, step = self.row_of(state)
        return parent, site, value + (state - first) * step

    def row_of(self, state: int) -> tuple[int, int, int, int, int, int]:
        """Return the row of a state: its first state, the one behind its last, the state around the loop, the loop's
        site, the first state's counter, and the loop's step.
        """
        row = bisect_right(self.firsts, state)
        behind = self.firsts[row] if row < len(self.firsts) else self.count
        parent, site, value, step = self.rows[row * 4 - 4 : row * 4]
        return self.firsts[row - 1], behind, parent, site, value, step

    def columns(self) -> NDArray[np.int64]:
        """Return the result of `at` for each state, as three rows of numbers."""
        firsts, rows = np.array(self.firsts, np.int64), np.array(self.rows, np.int64).reshape(-1, 4)
        lengths = np.diff(firsts, append=self.count)
        parents, sites, values, steps = np.repeat(rows, lengths, axis=0).T
        turns = np.arange(self.count) - np.repeat(firsts, lengths)
        return np.stack([parents, sites, values + turns * steps])

    @classmethod
    def of_columns(cls, columns: NDArray[np.int64]) -> LoopStates:
        """Return the states that these are the `columns` of."""
        made = cls()
        made.count = columns.shape[1]
        made.firsts = array("q", range(made.count))
        made.rows = array("q", np.vstack([columns, np.zeros((1, made.count), np.int64)]).T.tobytes())
        return made
