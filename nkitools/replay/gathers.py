"""Computations on rows that an index names: the rows are looked up anew in each replay, and kept for its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.replay.steps import Step, View


class Chosen(NamedTuple):
    """An argument of a step that is so many rows of a view; ``indices``: the number of the argument that names them."""

    argument: int
    indices: int
    rows: int


ChosenRows = Callable[[], list[Array]]
"""Gives the rows that data have chosen, an array for each gather of the kernel."""


class Gather:
    """A computation on rows that indices name, which are the last arguments."""

    def __init__(self, compute: Callable[..., Any], chosen: tuple[Chosen, ...], keywords: dict[str, Any]) -> None:
        self.compute, self.chosen, self.keywords = compute, chosen, keywords
        self._taken: list[Array] = []  # the rows of the last call, of each of ``chosen``

    def __call__(self, *arguments: Any) -> None:
        """Compute; IndexError for an index out of bounds, which the kernel's own run reports or leaves out."""
        given = list(arguments)
        for argument, indices, count in self.chosen:
            rows = _named_rows(given[indices], count, given[argument])
            given[argument] = given[argument][rows]
            self._taken.append(rows)
        self.compute(*given[: -len(self.chosen)], **self.keywords)

    def begin(self) -> ChosenRows:
        """Return what gives the rows of the next call, once it has been made."""
        self._taken = taken = list[Array]()
        return taken.copy


class CopiedRows:
    """A copy of rows that an index names, by several gathers of so many rows one after the other."""

    def __init__(self, counts: tuple[int, ...]) -> None:
        self.counts = counts
        self._taken: list[Array] = []  # the rows of the last call

    def __call__(self, destination: Array, table: Array, index: Array) -> None:
        """Copy the rows; IndexError for an index out of bounds."""
        rows = _named_rows(index, destination.shape[0], table)
        if table.flags.c_contiguous and destination.flags.c_contiguous:
            table.take(rows, axis=0, out=destination, mode="clip")  # which no index needs, and which has no buffer
        else:
            np.copyto(destination, table[rows])
        self._taken.append(rows)

    def begin(self) -> ChosenRows:
        """Return what gives the rows of the next call, once it has been made."""
        self._taken = taken = list[Array]()
        return partial(_parts, taken, self.counts)


def rows_of(gathers: Sequence[Gather | CopiedRows]) -> ChosenRows:
    """Return what gives the rows of the next calls of some gathers, in order; they are not looked at before."""
    return partial(_all_of, [each.begin() for each in gathers])


def _all_of(rows: Sequence[ChosenRows]) -> list[Array]:
    return [array for each in rows for array in each()]


def _parts(taken: Sequence[Array], counts: tuple[int, ...]) -> list[Array]:
    return [rows[first:end] for rows in taken for first, end in pairwise(accumulate(counts, initial=0))]


def _named_rows(index: Array, count: int, table: Array) -> Array:
    """Return the first numbers of an index, column after column; IndexError for one that is no row of the table."""
    in_order = index if index.ndim == 2 and index.shape[1] == 1 else index.reshape(index.shape[0], -1).T
    rows: Array = in_order.reshape(-1)[:count].astype(np.int64)
    unsigned = rows.view(np.uint64)  # where negative numbers are huge
    if unsigned.item(unsigned.argmax()) >= table.shape[0]:  # half of the time of `max`
        raise IndexError(f"an index is out of bounds for {table.shape[0]} rows")
    return rows


def merged_gathers(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with gathers merged that follow each other, with the next rows by the next indices."""
    found: list[Step] = []
    for step in steps:
        before = found[-1] if found else None
        if step.kind == "gather" and before is not None and before.kind == "gather" and _go_on(before, step):
            (rows, table, index), more = before.arguments, step.arguments
            arguments = [_stacked(rows, more[0]), table, _stacked(index, more[2])]
            compute = CopiedRows((*before.compute.counts, *step.compute.counts))  # type: ignore[attr-defined]
            found[-1] = replace(before, compute=compute, arguments=arguments)
        else:
            found.append(step)
    return found


def _go_on(before: Step, after: Step) -> bool:
    """Return whether one gather is what another one would be with more rows."""
    rows, table, index = before.arguments
    apart = rows.root is not table.root and rows.root is not index.root
    same = before.engines is after.engines and after.arguments[1] == table and apart
    return same and _is_next(rows, after.arguments[0]) and index.shape[1] == 1 and _is_next(index, after.arguments[2])


def _is_next(before: View, after: View) -> bool:
    same = before.root is after.root and before.dtype == after.dtype and before.strides == after.strides
    follows = after.offset == before.offset + before.shape[0] * before.strides[0]
    return same and follows and before.shape[1:] == after.shape[1:]


def _stacked(before: View, after: View) -> View:
    return replace(before, shape=(before.shape[0] + after.shape[0], *before.shape[1:]))
