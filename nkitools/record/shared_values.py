"""Checksums of the values that the programs of a launch write into shared HBM.

Programs that write equal values to one place do redundant work, and no harm (NK508). Programs that write different
values race (NK502). The views alone do not show the difference.
"""

from __future__ import annotations

from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np

from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.record.beside_rows import Part
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Access, Row


class SharedValues(Observer):
    """An observer that keeps the checksums in `Record.values`."""

    def __init__(self) -> None:
        self._shared: WeakValueDictionary[int, Storage] = WeakValueDictionary()

    def allocated(self, record: Record, storage: Storage) -> None:
        """Remember a storage in shared HBM."""
        if storage.memory is MemoryRegion.shared_hbm:
            self._shared[storage.id] = storage

    def issued(self, record: Record, row: Row) -> None:
        """Keep a checksum of each view of shared HBM that the instruction has written."""
        if row.plan.names_only:
            return
        for operand, is_written in enumerate(row.plan.written):
            access = row.access(operand)
            storage = self._shared.get(access.storage) if is_written else None
            if storage is not None:
                _keep(record, storage, access, record.beside.part_as_run(row.position, operand))


def _keep(record: Record, storage: Storage, access: Access, part: Part | None) -> None:
    layout = access.layout if part is None else part.layout
    array = storage.window(layout.shape, layout.dtype, access.byte_offset, layout.strides)
    place = Access(storage.id, layout, access.byte_offset, written=True)
    written = record.values.setdefault((len(record.meetings), record.programs[-1][1], place, part), [])
    values = np.ascontiguousarray(array if part is None else part.of(array))  # without a copy, if it can be
    checksum = crc32(values.reshape(-1).view(np.uint8).data)
    if not written or written[-1] != checksum:
        written.append(checksum)
