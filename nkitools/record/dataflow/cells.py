"""A memory cut into a grid at the edges of views, to find which elements views touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.elements import ONE_ROW, Forms, Runs
from nkitools.record.dataflow.pieces import View, boxes_of, ranges


class Cells(NamedTuple):
    """Rectangles of a memory, numbered by their first bytes: each view touches a rectangle as a whole or not at all.

    ``pitch``: the bytes of a row of the memory.
    ``rows``, ``columns``: the edges of the rectangles, in rows and in bytes of a row.
    ``by_view``: the numbers of each view's cells.
    """

    pitch: int
    rows: Array
    columns: Array
    by_view: dict[View, Array]

    def at(self, bytes_: Array) -> tuple[Array, Array]:
        """Return the row and the column of the cell that each of some bytes lies in, of `rows` and `columns`.

        A byte before all cells, or behind them, has the last row or column, which is no cell's.
        """
        rows, columns = np.divmod(bytes_, self.pitch)
        return np.searchsorted(self.rows, rows, "right") - 1, np.searchsorted(self.columns, columns, "right") - 1

    def first_byte(self, cell: int) -> int:
        """Return the first byte of a cell."""
        row, column = divmod(cell, self.columns.size)
        return int(self.rows[row]) * self.pitch + int(self.columns[column])

    def elements(self, cells: Array, count: int, itemsize: int) -> Array:
        """Return for each of the first ``count`` elements of the memory whether one of the cells has bytes of it."""
        rows, columns = np.divmod(cells, self.columns.size)
        heights = np.diff(self.rows)[rows]
        firsts = ranges(self.rows[rows], heights) * self.pitch
        starts = firsts + np.repeat(self.columns[columns], heights)
        return _covered(starts, firsts + np.repeat(self.columns[columns + 1], heights), count, itemsize)


def cells_of(views: Sequence[View], pitches: Sequence[int]) -> Cells:
    """Return the cells of some views; ``pitches``: lengths of rows that the memory may be cut into."""
    pitch, boxes = boxes_of(views, pitches, Forms())
    runs = [[(_moved(box.rows, box.row), _moved(box.columns, box.column)) for box in each] for each in boxes]
    rows, columns = (
        np.unique(np.concatenate([edges for each in runs for box in each for edges in box[axis]])) for axis in (0, 1)
    )
    cells = [
        [_between(rows, down)[:, None] * columns.size + _between(columns, across) for down, across in each]
        for each in runs
    ]
    by_view = {view: np.concatenate(each, axis=None) for view, each in zip(views, cells, strict=True)}
    return Cells(pitch, rows, columns, by_view)


def touched_elements(view: View, count: int, itemsize: int) -> Array:
    """Return for each of the first ``count`` elements of a memory whether a view touches bytes of it."""
    _, ((box,),) = boxes_of([view], (ONE_ROW,), Forms())
    runs = _moved(box.columns, box.column)
    return _covered(runs.starts, runs.ends, count, itemsize)


def _covered(starts: Array, ends: Array, count: int, itemsize: int) -> Array:
    """Return for each of the first ``count`` elements whether runs of bytes lie in it."""
    changes = np.bincount(starts // itemsize, minlength=count + 1)
    changes -= np.bincount(-(-ends // itemsize), minlength=count + 1)
    return np.asarray(np.cumsum(changes[:count]) > 0)


def _moved(runs: Runs, by: int) -> Runs:
    return Runs(runs.starts + by, runs.ends + by)


def _between(edges: Array, runs: Runs) -> Array:
    """Return the numbers of the stretches between edges that lie in runs."""
    firsts, ends = (np.searchsorted(edges, each) for each in runs)
    return ranges(firsts, ends - firsts)
