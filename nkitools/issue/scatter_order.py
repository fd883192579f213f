"""Scatters whose indices name the same place more than once (NK505, NK509)."""

from __future__ import annotations

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import REPEATED, picture_of
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.plan import Plan
from nkitools.rules.finding import report


def check_unique(plan: Plan, tensor: VectorTensor) -> None:
    """NK505: one read-modify-write of a row would not see the other."""
    rows, valid = tensor.chosen()
    named, counts = np.unique(rows[valid], return_counts=True)
    if (counts > 1).any():
        row = int(named[np.argmax(counts > 1)])
        first, second = (int(each) for each in np.flatnonzero(valid & (rows == row))[:2])
        report(
            "NK505",
            f"{plan.name}: partitions {first} and {second} of {describe(tensor.index)} both name row {row} of "
            f"{describe(tensor.rows)}",
            about=(tensor.index, tensor.rows),
            picture=lambda: picture_of(valid & np.isin(rows, named[counts > 1]), REPEATED, "entries of the index"),
        )


def check_columns(plan: Plan, tensor: ColumnTensor, missing: Array | None) -> None:
    """NK505: of two additions to one column, one would not see the other."""
    offsets = tensor.offsets
    assert offsets is not None
    named, counts = np.unique(offsets, return_counts=True)
    if (counts > 1).any() and (missing is None or not missing.all()):
        column = int(named[np.argmax(counts > 1)])
        first, second = (int(each) for each in np.flatnonzero(offsets == column)[:2])
        report(
            "NK505",
            f"{plan.name}: offsets {first} and {second} of {describe(tensor.index)} both name element {column} of the "
            f"partitions of {describe(tensor.columns)}",
            about=(tensor.index, tensor.columns),
            picture=lambda: picture_of(np.isin(offsets, named[counts > 1]), REPEATED, "entries of the index"),
        )


def check_order(plan: Plan, tensor: VectorTensor, values: Array, where: Array | None) -> None:
    """NK509: of two different values for one place, either may stay. ``where``: which of the values are written."""
    here, there = tensor.places(where)
    places = np.ravel_multi_index(there, tensor.rows.shape[: len(there)])
    # Values for one place next to each other, each before those that come later.
    order = np.argsort(places, kind="stable")
    again = np.flatnonzero(places[order[1:]] == places[order[:-1]])
    if not again.size:
        return
    bits = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape[: len(here)], -1)
    earlier, later = (bits[tuple(axis[order[at]] for axis in here)] for at in (again, again + 1))
    differ = again[(earlier != later).any(axis=1)]
    if not differ.size:
        return
    rows, valid = tensor.chosen()
    entries = here[0][order]
    first, second = (int(each) for each in entries[differ[0] : differ[0] + 2])
    report(
        "NK509",
        f"{plan.name}: entries {first} and {second} of {describe(tensor.index)} both name row {int(rows[first])} of "
        f"{describe(tensor.rows)} and bring different values; which of them stays is not defined "
        f"({np.unique(entries[differ + 1]).size} of {np.unique(entries).size} rows come with a change to one named "
        "before)",
        about=(tensor.index, tensor.rows),
        picture=lambda: picture_of(valid & np.isin(rows, rows[entries[differ]]), REPEATED, "entries of the index"),
    )
