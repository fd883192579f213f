"""The values of elements on a walk back: from a second run that records them, or from a watched run."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakValueDictionary

import numpy as np

from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.record.dataflow.last_accesses import GIVEN, UNWRITTEN
from nkitools.record.last_writer import bytes_of
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Access, Row
from nkitools.record.run import Run
from nkitools.record.watch.written import Written
from nkitools.why.backward import Backward
from nkitools.why.memory_units import Memories, Memory

Wanted = dict[tuple[int, Memory, int], Array]
"""Units by record, memory and the position of their writer; `GIVEN` for those that no instruction wrote."""


class Values:
    """The bytes of units as each writer left them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Memory, int], tuple[Array, Array]] = {}

    def keep(self, number: int, memory: Memory, writer: int, units: Array, raw: Array) -> None:
        """Keep the bytes of sorted units, one row for each."""
        known = self._kept.get((number, memory, writer))
        if known is not None:
            units, firsts = np.unique(np.concatenate((units, known[0])), return_index=True)
            raw = np.concatenate((raw, known[1]))[firsts]
        self._kept[number, memory, writer] = units, raw

    def read(self, number: int, memory: Memory, parts: Mapping[int, Array]) -> tuple[Array, Array] | None:
        """Return sorted units with their bytes; None if one is unknown, or if none was ever written.

        ``parts``: the units by writer. Those that were never written are left out.
        """
        found = []
        for writer, units in parts.items():
            if writer == UNWRITTEN:
                continue
            known = self._kept.get((number, memory, writer))
            if known is None:
                return None
            if known[0].size == units.size and (known[0] == units).all():
                found.append(known)
                continue
            places = np.minimum(np.searchsorted(known[0], units), known[0].size - 1)
            if not (known[0][places] == units).all():
                return None
            found.append((units, known[1][places]))
        if len(found) <= 1:
            return found[0] if found else None
        units, raw = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(units)
        return units[order], raw[order]


def wanted_of(back: Backward) -> Wanted:
    """Return all units that a walk back reads, and those of the indices and operands whose values it lacked."""
    found: dict[tuple[int, Memory, int], list[Array]] = {}
    for read in (*back.reads(), *back.missed):
        memory = back.memories[read.number].memory_of(read.access.storage)
        for writer, units in read.writers.items():
            found.setdefault((read.number, memory, writer), []).append(units)
    return {key: np.unique(np.concatenate(units)) for key, units in found.items() if key[2] != UNWRITTEN}


class Capture(Observer):
    """An observer that keeps, in a second run, the wanted units of the first one."""

    def __init__(self, back: Backward, wanted: Wanted) -> None:
        self.values = Values()
        self._memories = back.memories
        self._storages: WeakValueDictionary[int, Storage] = WeakValueDictionary()
        self._written: dict[tuple[int, int], list[tuple[Memory, Array]]] = {}
        self._given: dict[tuple[int, int], tuple[Memory, Array]] = {}
        self._numbers: dict[tuple[int, int], int] = {}  # of storages of this run, in the order in which they were made
        self._first = [[each.memory_of(id_) for id_ in each.record.storages] for each in back.memories]
        places = [{id_: at for at, id_ in enumerate(record.storages)} for record in back.records]
        for (number, memory, writer), units in wanted.items():
            if writer == GIVEN:
                if memory[0] == "storage" and memory[1] in places[number]:
                    self._given[number, places[number][memory[1]]] = memory, units
            else:
                self._written.setdefault((number, writer), []).append((memory, units))

    def allocated(self, record: Record, storage: Storage) -> None:
        """Keep a reference to a storage, and the wanted units of an argument or a constant."""
        self._storages[storage.id] = storage
        number = self._numbers[record.rank or 0, storage.id] = len(record.storages) - 1
        wanted = self._given.get((record.rank or 0, number))
        if wanted is not None and storage.full:
            self._keep(record, storage, GIVEN, *wanted)

    def issued(self, record: Record, row: Row) -> None:
        """Keep the wanted units that the instruction wrote."""
        number = record.rank or 0
        for memory, units in self._written.get((number, row.position), ()):
            for access in row.writes():
                storage = self._storages.get(access.storage)
                if storage is not None and self._was(number, access.storage) == memory:
                    self._keep(record, storage, row.position, memory, units)
                    break

    def _was(self, number: int, storage: int) -> Memory | None:
        """Return the memory of the first run that corresponds to a storage of this one; None if there is none."""
        place = self._numbers.get((number, storage), -1)
        return self._first[number][place] if 0 <= place < len(self._first[number]) else None

    def _keep(self, record: Record, storage: Storage, writer: int, memory: Memory, units: Array) -> None:
        number = record.rank or 0
        unit = self._memories[number].unit(memory)
        raw = raw_bytes(storage)
        self.values.keep(number, memory, writer, units, raw[units[:, None] * unit + np.arange(unit)])


def raw_bytes(storage: Storage) -> Array:
    """Return all bytes of the memory that a storage lies in."""
    if storage.physical is not None:
        found: Array = storage.physical.bytes
        return found.reshape(-1).view(np.uint8)
    return storage.array.reshape(-1).view(np.uint8)


def watched_values(run: Run, memories: list[Memories]) -> Values:
    """Return the values that a watch kept of a run."""
    values = Values()
    for number, record in enumerate(run.all_records):
        for written in (*record.inputs, *record.writes):
            if written.value is not None and not written.scattered:
                _keep_written(values, number, memories[number], record, written)
    return values


def _keep_written(values: Values, number: int, memories: Memories, record: Record, written: Written) -> None:
    value, writer = np.asarray(written.value), written.position if written.position >= 0 else GIVEN
    accesses = _accesses(record, written)
    if accesses is None or accesses.layout.dtype.itemsize != value.dtype.itemsize:
        return
    memory = memories.memory_of(accesses.storage)
    unit = memories.unit(memory)
    firsts = (bytes_of(accesses.layout).reshape(-1) + memories.first_byte(accesses)) // unit
    width = value.dtype.itemsize // unit
    units = (firsts[:, None] + np.arange(width)).reshape(-1)
    raw = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8).reshape(-1, unit)
    known = np.ones(units.size, np.bool_)
    if written.unwritten is not None:
        known = np.repeat(~written.unwritten.reshape(-1), width)
    units, places = np.unique(units[known], return_index=True)
    values.keep(number, memory, writer, units, raw[known][places])


def _accesses(record: Record, written: Written) -> Access | None:
    """Return the view that a watch kept the values of; None if the record does not have it."""
    if written.position < 0:
        known = record.storages.get(written.storage)
        if known is None or known.place >= 0:
            return None
        from nkitools.chip.dtypes import as_dtype
        from nkitools.chip.layout import layout_of
        from nkitools.chip.memory_region import MEMORY_NAMES

        memory = next(region for region, name in MEMORY_NAMES.items() if name == known.memory)
        layout = layout_of(written.shape, written.strides, as_dtype(known.dtype), memory, 0, 0, 1)
        return Access(written.storage, layout, 0, written=True)
    row = record.row(written.position)
    return next(
        (
            access
            for access in row.accesses()
            if access.written
            and (access.storage, access.byte_offset) == (written.storage, written.byte_offset)
            and access.layout.shape == tuple(written.shape)
        ),
        None,
    )
