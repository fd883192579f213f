"""The page's data for tracing values back: sources of operands, memories of storages, and elements that data choose."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.run import Run
from nkitools.report.page.traced import Traced


def flow_of(run: Run, columns: Sequence[Columns], bases: Sequence[int], traced: Traced) -> dict[str, Array]:
    """Return the sources of operands, one operand after the other, and by position those by other ways."""
    found = run.dependences
    by_operand = found.by_operand
    counts = np.diff(by_operand.starts)
    positions = [each.positions + base for each, base in zip(columns, bases, strict=True)]
    readers = np.repeat(np.concatenate([np.zeros(0, np.int64), *positions]), counts)
    width = len(found.flow) + 2  # sources are -2 and more
    every = np.repeat(np.arange(len(found.flow)), np.diff(found.flow.starts)) * width + found.flow.sources + 2
    known = np.append(np.sort(readers * width + by_operand.sources + 2), -1)
    # By a search: NumPy's own differences of sets hash each element.
    others = np.sort(every[known[np.searchsorted(known[:-1], every)] != every])
    others_at, sources = np.divmod(others, width)
    more = np.array(traced.others, np.int64).reshape(-1, 2)
    return {
        "flow.counts": np.concatenate([counts, np.array(traced.counts, np.int64)]),
        "flow.sources": np.concatenate([by_operand.sources, np.array(traced.sources, np.int64)]),
        "others.position": np.concatenate([others_at, more[:, 0]]),
        "others.source": np.concatenate([sources - 2, more[:, 1]]),
    }


def memories_of(records: Sequence[tuple[int, Record]], storages: Iterable[Hashable]) -> tuple[Array, Array]:
    """Return for each storage the number of its memory and its first byte there.

    ``records``: with the positions of their first instructions. ``storages``: such a position and a storage's number.
    Storages with an address share a memory with all others of it in their record; every other one is a memory itself.
    """
    places = {
        (base, storage): ((base, "place", known.place), known.first_byte)
        for base, record in records
        for storage, known in record.storages.items()
        if known.place >= 0
    }
    numbers: dict[Hashable, int] = {}
    found = [places.get(storage, (storage, 0)) for storage in storages]  # type: ignore[call-overload]
    memories = [numbers.setdefault(memory, len(numbers)) for memory, _ in found]
    return np.array(memories, np.int64), np.array([first for _, first in found], np.int64)


def loose_instructions(base: int, columns: Columns) -> Array:
    """Return the positions of the instructions whose elements are chosen by data or masks."""
    record = columns.record
    chosen = {position for position, _, _ in record.beside.parts(as_run=True)}
    chosen.update(np.array(record.beside.indices, np.int64).reshape(-1, 3)[:, 0].tolist())
    partly = [
        number
        for number, each in record.plans.items()
        if number in record.beside.of_plans or any(touched is not None for touched in each.plan.touches or ())
    ]
    chosen.update(np.flatnonzero(np.isin(columns.plans, partly)).tolist())
    return np.array(sorted(chosen), np.int64) + base
