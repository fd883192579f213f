"""All accesses of a record to memory, as columns: operands, and indices and addresses that are no operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.record import rows
from nkitools.record.beside_rows import BesideRows, Part
from nkitools.record.columns import Columns, adds
from nkitools.record.dataflow.elements import ONE_ROW, Forms, pitches_of
from nkitools.record.dataflow.last_accesses import ADDS, GIVEN, MAY_WRITE, READS, UNWRITTEN, WRITES
from nkitools.record.dataflow.pieces import Pieces, View, pieces_of
from nkitools.record.record import Record, StorageRecord
from nkitools.record.rows import RecordedPlan

_MOST_KEPT = 1024  # views of a memory whose pieces are kept for other runs


class Views(NamedTuple):
    """The distinct views of a record: where each lies, which of its elements are meant, and the view of each access.

    ``parts``: places in `Accesses.parts`, -1 for all elements. ``which``: the view of each access.
    """

    storages: Array
    layouts: Array
    byte_offsets: Array
    parts: Array
    which: Array


class Accesses:
    """The accesses of a record, in the order of their instructions; of `Columns` those that read or write.

    ``owners``: which operand of the record an access is; from the number of operands on, which index.
    ``positions``: the instruction. ``kinds``: what it does (`nkitools.record.dataflow.last_accesses`).
    ``storages``, ``layouts``, ``byte_offsets``: the view, and ``numbers`` which of `parts` of it, -1 for all.
    ``as_run``: where data have chosen elements, the parts are those of this run, as far as they were kept.
    """

    def __init__(self, record: Record, columns: Columns, *, as_run: bool = False) -> None:
        self.record, self.columns = record, columns
        indices = np.array(record.beside.indices, np.int64).reshape(-1, 3)
        self.owners = np.arange(columns.positions.size + len(indices))
        self.positions = np.concatenate((columns.positions, indices[:, 0]))
        self.storages = np.concatenate((columns.storages, rows.storage_column(indices[:, 1])))
        self.layouts = np.concatenate((columns.layouts, rows.layout_column(indices[:, 1])))
        self.byte_offsets = np.concatenate((columns.byte_offsets, indices[:, 2]))
        self.kinds = np.concatenate((columns.of_plans(_kinds, np.uint8), np.full(len(indices), READS, np.uint8)))
        self.numbers = np.full(self.positions.size, -1, np.int64)
        self.parts = self._numbered_parts(columns, as_run=as_run)
        if len(indices):
            self.take(np.argsort(self.positions, kind="stable"))
        if not self.kinds.all():
            self.take(np.flatnonzero(self.kinds))

    def take(self, order: Array) -> None:
        """Go on with some of the accesses, in this order."""
        for name in ("owners", "positions", "storages", "layouts", "byte_offsets", "kinds", "numbers"):
            setattr(self, name, getattr(self, name)[order])

    def _numbered_parts(self, columns: Columns, *, as_run: bool) -> list[Part]:
        """Return the parts, and number them at the operands that they belong to."""
        record, known = self.record, dict[Part, int]()
        firsts = columns.first_operands
        for plan, parts in parts_of_plans(record).items():
            rows_of_plan = firsts[:-1][columns.plans == plan]
            for operand, part in parts:
                self.numbers[rows_of_plan + operand] = known.setdefault(part, len(known))
        for position, operand, part in record.beside.parts(as_run=as_run):
            self.numbers[firsts[position] + operand] = known.setdefault(part, len(known))
        empty = [number for part, number in known.items() if part.is_empty]
        self.kinds[np.isin(self.numbers, empty)] = 0  # nothing is read or written
        return list(known)

    @cached_property
    def views(self) -> Views:
        """The distinct views, those of one storage one after the other."""
        columns = (self.storages, self.layouts, self.byte_offsets, self.numbers)
        firsts, which = distinct(columns)
        storages, layouts, byte_offsets, parts = (each[firsts] for each in columns)
        return Views(storages, layouts, byte_offsets, parts, which)

    @cached_property
    def _storages(self) -> tuple[list[StorageRecord | None], Array]:
        """The storages of the views, None for one that the record does not know, and which of them each view has."""
        begins = _begins(self.views.storages)
        known = self.record.storages
        return [known.get(each) for each in self.views.storages[begins].tolist()], np.cumsum(begins) - 1

    def unwritten(self) -> Array:
        """Return for each view the source of its unwritten elements."""
        storages, which = self._storages
        sources = [GIVEN if each is None or each.is_given else UNWRITTEN for each in storages]
        return np.asarray(np.array(sources, np.int64)[which])

    def pieces(self) -> Pieces:
        """Return the pieces of the views, those of all memories numbered one after the other."""
        memories, starts = self._memories()
        order = np.argsort(memories, kind="stable")
        bounds = np.append(np.flatnonzero(_begins(memories[order])), memories.size)
        lengths = bounds[1:] - bounds[:-1]
        several = np.flatnonzero(lengths > 1)
        alone = memories.size - int(lengths[several].sum())
        counts, found = np.ones(memories.size, np.int64), [np.arange(alone)]
        is_alone = np.ones(memories.size, np.bool_)
        cuts, total, known, forms = list[Array](), alone, dict[bytes, Pieces](), Forms()
        for first, last in zip(bounds[several].tolist(), bounds[several + 1].tolist(), strict=True):
            members = order[first:last]
            cut = self._cut(members, starts[members], known, forms)
            counts[members], is_alone[members] = cut.starts[1:] - cut.starts[:-1], False
            cuts.append(members)
            found.append(cut.pieces + total)
            total += cut.total
        sequence = np.concatenate((np.flatnonzero(is_alone), *cuts))
        return _reordered(sequence, counts, np.concatenate(found), total)

    def _memories(self) -> tuple[Array, Array]:
        """Return for each view the memory that its storage shares with others, and where it begins there."""
        storages, which = self._storages
        memories, starts = self.views.storages, self.views.byte_offsets
        if not any(each is not None and each.place >= 0 for each in storages):
            return memories, starts
        shared = [(-1, 0) if each is None or each.place < 0 else (each.place, _origin(each)) for each in storages]
        places, origins = np.array(shared, np.int64)[which].T
        return np.where(places < 0, memories, places), starts + origins

    def _cut(self, members: Array, starts: Array, known: dict[bytes, Pieces], forms: Forms) -> Pieces:
        """Return the pieces of the views of one memory; ``known``: those of memories that look the same."""
        storages, which = self._storages
        pitches = row_lengths(storages[which[members[0]]])
        layouts, parts = self.views.layouts[members], self.views.parts[members]
        if members.size <= _MOST_KEPT and (parts < 0).all():
            return _cut_whole(layouts.tobytes(), starts.tobytes(), pitches)
        key = np.concatenate((layouts, starts, parts, pitches)).tobytes()
        if key not in known:
            known[key] = pieces_of(self.shown(members, starts), pitches, forms)
        return known[key]

    def shown(self, members: Array, starts: Array) -> list[View]:
        """Return what some of the views show, each beginning at a byte."""
        layouts, parts = self.views.layouts[members], self.views.parts[members]
        return [
            View(LAYOUTS[layout], start, None if part < 0 else self.parts[part])
            for layout, start, part in zip(layouts.tolist(), starts.tolist(), parts.tolist(), strict=True)
        ]


@lru_cache(256)  # the same kernel makes the same views in every run
def _cut_whole(layouts: bytes, starts: bytes, pitches: tuple[int, ...]) -> Pieces:
    """Return the pieces of views (columns of int64) with all of their elements."""
    columns = (np.frombuffer(each, np.int64).tolist() for each in (layouts, starts))
    views = [View(LAYOUTS[layout], start, None) for layout, start in zip(*columns, strict=True)]
    return pieces_of(views, pitches, Forms())


def _origin(storage: StorageRecord) -> int:
    return storage.start_partition * storage.partition_bytes + storage.start_byte


def _begins(values: Array) -> Array:
    """Return whether each of some grouped values is the first of its group."""
    begins = np.ones(values.size, np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return begins


def row_lengths(storage: StorageRecord | None) -> tuple[int, ...]:
    """Return the lengths of rows that a memory may be cut into, of which the last takes every view."""
    if storage is None or (storage.has_address and not storage.partition_bytes):
        return (ONE_ROW,)
    if storage.partition_bytes:
        return storage.partition_bytes, ONE_ROW
    itemsize = as_dtype(storage.dtype).itemsize
    if storage.memory in ("SBUF", "PSUM"):
        return max(1, prod(storage.shape[1:]) * itemsize), ONE_ROW
    return *pitches_of(storage.shape, itemsize), ONE_ROW


def _reordered(sequence: Array, counts: Array, pieces: Array, total: int) -> Pieces:
    """Return the pieces of views in their order; ``pieces`` are those of the views in the order of ``sequence``."""
    starts = np.concatenate(([0], np.cumsum(counts)))
    lengths = counts[sequence]
    places = np.repeat(starts[sequence], lengths) + np.arange(pieces.size)
    places -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    found = np.empty_like(pieces)
    found[places] = pieces
    return Pieces(starts, found, total)


def _kinds(plan: RecordedPlan) -> list[int]:
    """Return for each operand of a plan what the instruction does with its elements."""
    if plan.names_only:
        return [0] * len(plan.written)
    # Where data choose, what they left out holds what it held: later readers may read either.
    writes = MAY_WRITE if plan.chooses is not None and plan.touches else WRITES
    if adds(plan):
        writes |= ADDS if plan.wants_fresh and not plan.adds_always else READS
    return [writes if written else READS for written in plan.written]


def parts_of_plans(record: Record) -> dict[int, list[tuple[int, Part]]]:
    """Return for each plan that touches fixed parts of its operands the operands and these parts."""
    found = dict(record.beside.of_plans)
    plans = {number: each.plan for number, each in record.plans.items()}
    partly = {
        number: plan for number, plan in plans.items() if plan.chooses is None and plan.touches and number not in found
    }
    if not partly:
        return found
    beside = BesideRows()
    for row in record.rows_between():
        if row.plan.id in partly and row.plan.id not in found:
            layouts = [access.layout for access in row.accesses()]
            found[row.plan.id] = [
                (operand, beside.lanes(layouts[operand], touched))
                for operand, touched in enumerate(row.plan.touches)
                if touched is not None
            ]
    return found


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return where each distinct row of some columns stands first, and which of them each row is; sorted."""
    joined, room = np.zeros(columns[0].size, np.int64), 1
    for column in columns:
        if not column.size:
            return joined, joined
        low, high = int(column.min()), int(column.max())
        if room * (high - low + 1) >= 1 << 62:
            _, joined = np.unique(joined, return_inverse=True)
            _, column = np.unique(column, return_inverse=True)
            low, high, room = 0, int(column.max()), int(joined.max()) + 1
        joined = joined.reshape(-1) * (high - low + 1) + (column.reshape(-1) - low)
        room *= high - low + 1
    order = np.argsort(joined, kind="stable")
    begins = _begins(joined[order])
    which = np.empty(order.size, np.int64)
    which[order] = np.cumsum(begins) - 1
    return order[begins], which
