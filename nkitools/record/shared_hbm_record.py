"""The record of a launch with several programs: also what each of them wrote into shared HBM, as a checksum.

Programs that write the same values to the same place do redundant work, and no harm (NK508); programs that write
different ones race (NK502). The views alone do not tell these apart.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.record.record import Record
from nkitools.record.rows import Access, Row


class SharedRecord(Record):
    """A record that knows the values of writes to shared HBM, where ``keeps_values`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.keeps_values = False
        self._shared: dict[int, Storage] = {}

    def allocated(self, storage: Storage) -> None:
        """Remember a storage."""
        super().allocated(storage)
        if storage.memory is MemoryRegion.shared_hbm:
            self._shared[storage.id] = storage

    def issued(self, plan: Any, site: int, operands: list[int]) -> None:
        """Add an instruction, which has been carried out."""
        if self.keeps_values:
            for access in Row(self.count, plan, site, operands).writes():
                if access.storage in self._shared:
                    self._keep(access)
        super().issued(plan, site, operands)

    def _keep(self, access: Access) -> None:
        layout = access.layout
        array = self._shared[access.storage].window(layout.shape, layout.dtype, access.byte_offset, layout.strides)
        key = (len(self.meetings), self.programs[-1][1], access)
        written = self.values.setdefault(key, [])
        checksum = crc32(array.tobytes())
        if not written or written[-1] != checksum:
            written.append(checksum)

    def forget(self) -> None:
        """Let go of the storages, which the record would keep alive."""
        self._shared.clear()
