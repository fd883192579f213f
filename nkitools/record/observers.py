"""Observers of a record while its run goes on: values for watches, checksums for races, pauses between programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nkitools.chip.memory import Storage
from nkitools.record.rows import Row

if TYPE_CHECKING:
    from nkitools.chip.tensor import NkiTensor
    from nkitools.record.record import Record


class Observer:
    """An observer that does nothing; one that does overrides what it needs.

    Each method gets the record, so that an observer refers to none and keeps none alive.
    """

    def allocated(self, record: Record, storage: Storage) -> None:
        """Look at a storage that was just made, or at one that holds an argument."""

    def issued(self, record: Record, row: Row) -> None:
        """Look at what the last instruction has done; the record has its row already."""

    def printed(self, record: Record) -> None:
        """Get ready for a device print, which the record keeps next."""

    def returned(self, record: Record, tensors: Sequence[NkiTensor]) -> None:
        """Look at the kernel's results, once all programs have ended."""
