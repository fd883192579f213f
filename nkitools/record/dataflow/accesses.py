"""All accesses of a record to memory, as columns: operands, and indices and addresses that are no operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from math import prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.facts.kept import Kept
from nkitools.record import rows
from nkitools.record.beside_rows import BesideRows, Part
from nkitools.record.columns import Columns, adds
from nkitools.record.dataflow.elements import ONE_ROW, Forms, pitches_of
from nkitools.record.dataflow.last_accesses import ADDS, MAY_WRITE, READS, WRITES
from nkitools.record.dataflow.pieces import Pieces, View, pieces_of
from nkitools.record.instruction_record import RecordedPlan
from nkitools.record.record import Record, StorageRecord

_COLUMNS = "places", "positions", "storages", "layouts", "byte_offsets", "kinds", "numbers"
_KIND_BITS = 4  # of the kind of an access
_MOST_BITS = 62  # of a number without its sign
_MOST_VIEWS = 1024  # of such a memory

_kept = Kept[bytes, Pieces](
    "pieces of memories by their views, with all elements", 256, "a kernel makes the same views in every run"
)


class Views(NamedTuple):
    """The distinct views of a record: memory, layout and elements of each, and the view of each access.

    ``memories``: the memory whose bytes the view's storage shares with others, else the storage. ``starts``: its first
    byte there. ``parts``: indices into `Accesses.parts`, -1 for all elements. ``which``: the view of each access.
    ``order``: the accesses, sorted by view.
    """

    memories: Array
    storages: Array
    layouts: Array
    starts: Array
    byte_offsets: Array
    parts: Array
    which: Array
    order: Array


class Accesses:
    """The accesses of a record, in the order of their instructions, the reads of each one before its writes.

    ``places``: the index of each operand in the rows; an index that is no operand counts as if it came after them all.
    ``positions``: the instruction. ``kinds``: read, write or add (`nkitools.record.dataflow.last_accesses`).
    ``storages``, ``layouts``, ``byte_offsets``: the view. ``numbers``: its elements, an index into `parts`, -1 for all.
    ``as_run``: if data chose elements, the parts are those of this run, as far as they were kept.
    """

    def __init__(self, record: Record, columns: Columns, *, as_run: bool = False) -> None:
        self.record, self.columns = record, columns
        touched = columns.of_plans(_touched, np.int64)
        self.positions, self.kinds = columns.positions.astype(np.int64), touched & (1 << _KIND_BITS) - 1
        self.places, self.storages, self.layouts, self.byte_offsets = columns.in_order(touched >> _KIND_BITS)
        self.numbers = np.full(self.positions.size, -1)
        self.parts = self._numbered_parts(columns, as_run=as_run)
        if record.beside.indices:
            self._add(np.array(record.beside.indices, np.int64).reshape(-1, 3), int(columns.first_operands[-1]))
        if not self.kinds.all():
            self.take(np.flatnonzero(self.kinds))

    def take(self, order: Array) -> None:
        """Go on with some of the accesses, in this order."""
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[order])

    def _add(self, indices: Array, first: int) -> None:
        """Add reads of indices and addresses that are no operands: position, word and byte offset of each."""
        count, (positions, words, byte_offsets) = len(indices), indices.T
        storages, layouts = rows.storage_column(words), rows.layout_column(words)
        places = rows.operand_place(positions, np.arange(first, first + count))
        kinds, numbers = np.full(count, READS), np.full(count, -1)
        columns = places, positions, storages, layouts, byte_offsets, kinds, numbers
        for name, column in zip(_COLUMNS, columns, strict=True):
            setattr(self, name, np.concatenate((getattr(self, name), column)))
        self.take(np.argsort(self.positions * 2 + (self.kinds >= WRITES), kind="stable"))

    def _numbered_parts(self, columns: Columns, *, as_run: bool) -> list[Part]:
        """Return the parts, and number them at the operands that they belong to."""
        record, known = self.record, dict[Part, int]()
        of_plans, of_rows = parts_of_plans(record), list(record.beside.parts(as_run=as_run))
        if not of_plans and not of_rows:
            return []
        firsts = columns.first_operands
        numbers = np.full(firsts[-1], -1)
        for plan, parts in of_plans.items():
            rows_of_plan = firsts[:-1][columns.plans == plan]
            for operand, part in parts:
                numbers[rows_of_plan + operand] = known.setdefault(part, len(known))
        for position, operand, part in of_rows:
            numbers[firsts[position] + operand] = known.setdefault(part, len(known))
        self.numbers = numbers[rows.operand_at(self.places, self.positions)]
        empty = [number for part, number in known.items() if part.is_empty]
        self.kinds[np.isin(self.numbers, empty)] = 0  # nothing is read or written
        return list(known)

    @cached_property
    def share_memory(self) -> bool:
        """Return whether some storages have addresses, so that they may share bytes."""
        return max(map(attrgetter("place"), self.record.storages.values()), default=-1) >= 0

    @cached_property
    def views(self) -> Views:
        """The distinct views, sorted by memory."""
        memories, starts = self._memories() if self.share_memory else (self.storages, self.byte_offsets)
        columns = memories, self.storages, self.layouts, starts, self.byte_offsets, self.numbers
        found = distinct((*columns[not self.share_memory : 4], *([self.numbers + 1] if self.parts else [])))
        shown = [each[found[0]] for each in columns[not self.share_memory : 4 + self.share_memory]]
        if not self.share_memory:
            shown = [shown[0], *shown, shown[2]]
        return Views._make([*shown, self.numbers[found[0]], *found[1:]])

    def _memories(self) -> tuple[Array, Array]:
        """Return for each access the memory that its storage shares with others, and its view's first byte there."""
        storages, which = np.unique(self.storages, return_inverse=True)
        known = [self.record.storages.get(each) for each in storages.tolist()]
        shared = [(-1, 0) if each is None or each.place < 0 else (each.place, each.first_byte) for each in known]
        places, origins = np.array(shared, np.int64).reshape(-1, 2)[which.reshape(-1)].T
        return np.where(places < 0, self.storages, places), self.byte_offsets + origins

    def given(self, storages: Array) -> Array:
        """Return whether some storages are arguments or constants, which hold elements that no instruction wrote."""
        known, numbers = self.record.storages, storages.tolist()
        given = {each: each not in known or known[each].is_given for each in set(numbers)}
        return np.fromiter(map(given.__getitem__, numbers), np.bool_, len(numbers))

    def pieces(self) -> Pieces:
        """Return the pieces of the views, numbered through all memories."""
        count = self.views.memories.size
        known, forms, cuts = dict[bytes, Pieces](), Forms(), list[tuple[int, int, Pieces]]()
        looks = np.concatenate((self.views.layouts, self.views.starts, self.views.parts)).reshape(3, -1).T
        keys, width = looks.tobytes(), 3 * looks.itemsize
        bounds = np.concatenate((_begins(self.views.memories).nonzero()[0], [count]))
        several = (bounds[1:] - bounds[:-1] > 1).nonzero()[0]
        for first, last in zip(bounds[several].tolist(), bounds[several + 1].tolist(), strict=True):
            key, kept = keys[first * width : last * width], known if self.parts or last - first > _MOST_VIEWS else _kept
            cut = kept.get(key)
            if cut is None:
                cut = kept[key] = self._cut(slice(first, last), forms)
            if not cut.are_apart:
                cuts.append((first, last, cut))
        # A view that shares no elements with another one is a piece, which has its number.
        if not cuts:
            return Pieces(np.arange(count + 1), np.arange(count), count)
        counts = np.ones(count, np.int64)
        for first, last, cut in cuts:
            counts[first:last] = cut.starts[1:] - cut.starts[:-1]
        starts = np.zeros(count + 1, np.int64)
        counts.cumsum(out=starts[1:])
        pieces, total = np.repeat(np.arange(count), counts), count
        for first, last, cut in cuts:
            pieces[starts[first] : starts[last]] = cut.pieces + total
            total += cut.total
        return Pieces(starts, pieces, total)

    def _cut(self, members: slice, forms: Forms) -> Pieces:
        """Return the pieces of the views of one memory."""
        pitches = row_lengths(self.record.storages.get(int(self.views.storages[members.start])))
        return pieces_of(self.shown(members, self.views.starts[members]), pitches, forms)

    def shown(self, members: Array | slice, starts: Array) -> list[View]:
        """Return some of the views, with the first byte of each."""
        layouts, parts = self.views.layouts[members], self.views.parts[members]
        return [
            View(LAYOUTS[layout], start, None if part < 0 else self.parts[part])
            for layout, start, part in zip(layouts.tolist(), starts.tolist(), parts.tolist(), strict=True)
        ]


def _begins(values: Array) -> Array:
    """Return whether each of some grouped values is the first of its group."""
    begins = np.ones(values.size, np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return begins


def row_lengths(storage: StorageRecord | None) -> tuple[int, ...]:
    """Return the lengths of rows that a memory may be cut into; the last length takes every view."""
    if storage is None or (storage.has_address and not storage.partition_bytes):
        return (ONE_ROW,)
    if storage.partition_bytes:
        return storage.partition_bytes, ONE_ROW
    itemsize = as_dtype(storage.dtype).itemsize
    if storage.memory in ("SBUF", "PSUM"):
        return max(1, prod(storage.shape[1:]) * itemsize), ONE_ROW
    return *pitches_of(storage.shape, itemsize), ONE_ROW


def _touched(plan: RecordedPlan) -> tuple[int, ...]:
    """Return the operands of a plan, those that are read first, as numbers: the operand's index and the kind of access.

    The lowest `_KIND_BITS` bits are the kind: 0 if the elements are not touched.
    """
    if plan.names_only:
        return tuple(operand << _KIND_BITS for operand in range(len(plan.written)))
    return _reads_first(tuple(plan.written), writes_of(plan))


def writes_of(plan: RecordedPlan) -> int:
    """Return the kind of access that a plan makes to its outputs."""
    # Elements that data leave out keep their old values: later readers may read either.
    writes = MAY_WRITE if plan.chooses is not None and plan.touches else WRITES
    if adds(plan):
        writes |= ADDS if plan.wants_fresh and not plan.adds_always else READS
    return writes


@cache
def _reads_first(written: tuple[bool, ...], writes: int) -> tuple[int, ...]:
    order = sorted(range(len(written)), key=written.__getitem__)
    return tuple(operand << _KIND_BITS | (writes if written[operand] else READS) for operand in order)


def parts_of_plans(record: Record) -> dict[int, list[tuple[int, Part]]]:
    """Return for each plan that touches fixed parts of its operands the operands and these parts."""
    found = dict(record.beside.of_plans)
    partly = {
        number
        for number, each in record.plans.items()
        if each.plan.touches and each.plan.chooses is None and number not in found
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


def distinct(columns: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return as `numpy.unique` does, for rows of columns: the first index of each distinct row, the number of each
    row's distinct row, and the order of the rows.

    No number in a column is negative.
    """
    joined, width = columns[0], 0
    if not joined.size:
        return joined, joined, joined
    for column in columns:
        column = column ^ column[0]  # as many bits as values differ in
        more = int(np.bitwise_or.reduce(column)).bit_length()
        if width + more > _MOST_BITS:
            _, joined = np.unique(joined, return_inverse=True)
            _, column = np.unique(column, return_inverse=True)
            width, more = int(joined.max()).bit_length(), int(column.max()).bit_length()
        joined = joined << more | column if width else column
        width += more
    bits = joined.size.bit_length()
    if width + bits <= _MOST_BITS:
        pairs = np.sort((joined << bits) | np.arange(joined.size))  # faster than the order alone
        order, begins = pairs & ((1 << bits) - 1), _begins(pairs >> bits)
    else:
        order = np.argsort(joined, kind="stable")
        begins = _begins(joined[order])
    which = np.empty(order.size, np.int64)
    which[order] = begins.cumsum() - 1
    return order[begins], which, order
