"""Views whose elements an index on the device has chosen: gathers and scatters, of rows or of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part
from nkitools.record.rows import Access


@dataclass(frozen=True, eq=False)
class IndirectView:
    """An operand whose rows or columns an index chose.

    ``view``: the operand as the instruction sees it. ``part``: all rows or columns that the index chose. ``index``: the
    view of the index, None if the record does not have it. ``group``: the index of line k of the view lies in partition
    k % group, at k // group. ``places``: the row or column that each line of the view shows; None if unknown.
    """

    view: Access
    part: Part
    index: Access | None
    group: int
    places: Array | None = None

    @property
    def axis(self) -> int:
        """Return the dimension along which the index chooses: 0 for rows, 1 for columns."""
        return 0 if self.part.columns is None else 1

    @property
    def all_of_it(self) -> Access:
        """Return the view of all rows or columns that the index may choose from."""
        return self.view._replace(layout=self.part.layout)

    @property
    def chosen(self) -> Array:
        """Return the numbers of the rows or columns that the index chose, ascending."""
        found = self.part.rows if self.part.columns is None else self.part.columns
        assert found is not None
        return found

    def index_elements(self, mask: Array) -> Array:
        """Return a mask of the index elements that chose the elements ``mask`` of the view."""
        assert self.index is not None
        shape = self.index.layout.shape
        lines = np.flatnonzero(np.moveaxis(mask, self.axis, 0).reshape(mask.shape[self.axis], -1).any(axis=1))
        found = np.zeros((shape[0], int(np.prod(shape[1:]))), np.bool_)
        found[lines % self.group, lines // self.group] = True
        return found.reshape(shape)

    def index_places(self, values: Array) -> Array:
        """Return the row or column that each line of the view shows, from the values of the index."""
        turns = values.reshape(values.shape[0], -1)[: self.group].T.reshape(-1)
        return np.asarray(turns[: self.view.layout.shape[self.axis]].astype(np.int64))

    def sources(self, mask: Array) -> Array:
        """Return a mask of the elements of `all_of_it` that the view shows at ``mask``.

        Without places: of those that it may show there.
        """
        found = np.zeros(self.part.layout.shape, np.bool_)
        lines, into = np.moveaxis(mask, self.axis, 0), np.moveaxis(found, self.axis, 0)
        if self.places is None:
            into[self.chosen] = lines.any(axis=0)
            return found
        inside = (self.places >= 0) & (self.places < into.shape[0]) & np.isin(self.places, self.chosen)
        np.logical_or.at(into, self.places[inside], lines[inside])
        return found

    def results(self, marked: Array, *, adds: bool) -> Array:
        """Return a mask of the view's elements that were put into the marked elements of `all_of_it`.

        ``adds``: whether all lines with the same place count, or only the last of them. Without places: those that may
        be.
        """
        marks = np.moveaxis(marked, self.axis, 0)
        if self.places is None:
            found = np.broadcast_to(
                marks[self.chosen].any(axis=0), (self.view.layout.shape[self.axis], *marks.shape[1:])
            )
        else:
            inside = np.isin(self.places, self.chosen)
            found = marks[np.where(inside, self.places, 0)] & inside.reshape(-1, *[1] * (marks.ndim - 1))
            if not adds:
                last = np.zeros(inside.size, np.bool_)
                latest = {place: at for at, place in enumerate(self.places.tolist())}
                last[list(latest.values())] = True
                found = found & last.reshape(-1, *[1] * (marks.ndim - 1))
        return np.ascontiguousarray(np.moveaxis(found, 0, self.axis))
