"""All bytes of a core's SBUF or PSUM, and the storages that were placed in them by address.

Storages may claim the same bytes: that is how memory is used again. Writing to one takes those bytes from the others,
which remember to whom they lost them, so that reading them afterwards can be told from reading what was never written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array

if TYPE_CHECKING:
    from nkitools.chip.memory import Storage

# Partitions and bytes in them: (first, end, first byte, end byte).
Region: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class Loss:
    """Bytes that another storage has overwritten: which, by whom, and the site of the instruction that did it."""

    region: Region
    by: Storage
    site: int


class PhysicalMemory:
    """The bytes, and the tenants: storages that have written some of them and not lost all of those since."""

    __slots__ = ("bytes", "partition_bytes", "partitions", "site", "sums", "tenants")

    def __init__(self, partitions: int, partition_bytes: int, site: Callable[[], int] = lambda: -1) -> None:
        self.partitions = partitions
        self.partition_bytes = partition_bytes
        self.bytes: Array = np.zeros(partitions * partition_bytes, np.uint8)
        self.tenants: dict[int, Storage] = {}
        self.site = site
        self.sums: list[Any] = []  # of its tenants: see Storage

    def claim(self, writer: Storage, layout: Layout, byte_offset: int, where: Array | None) -> None:
        """``writer`` writes to a view of itself (``where``: to its true lanes); other tenants lose those bytes."""
        others = [each for each in self.tenants.values() if each is not writer and each.overlaps(writer)]
        self.tenants[writer.id] = writer
        if not others:
            return
        partitions, starts, run = _runs(layout, byte_offset + _origin(writer), where, self.partition_bytes)
        for other in others:
            region = _taken(other, partitions, starts, run)
            if region is not None:
                other.lose(Loss(region, writer, self.site()))
            if not other.holds_anything:
                del self.tenants[other.id]


def _origin(storage: Storage) -> int:
    return storage.start_partition * storage.partition_bytes + storage.start_byte


def _runs(layout: Layout, start: int, where: Array | None, partition_bytes: int) -> tuple[Array, Array, int]:
    """The partitions and first bytes of the contiguous runs of a view, and their length."""
    if where is None:
        dimensions, run = layout.runs, layout.run
        chosen: Any = ...
    else:
        dimensions, run = tuple(zip(layout.shape, layout.strides, strict=True)), layout.dtype.itemsize
        chosen = np.broadcast_to(where, layout.shape)
    offsets = np.asarray(start)
    for size, stride in dimensions:
        offsets = offsets[..., None] + np.arange(size) * stride
    partitions, starts = np.divmod(offsets[chosen].reshape(-1), partition_bytes)
    return partitions, starts, run


def _taken(tenant: Storage, partitions: Array, starts: Array, run: int) -> Region | None:
    """Take runs of bytes from a tenant; the region around those that it held, or None where it held none of them."""
    first, first_byte = tenant.start_partition, tenant.start_byte
    flags = tenant.flags_by_partition(gcd(run, *(int(start) for start in np.unique((starts - first_byte) % run))))
    unit = tenant.unit
    columns = (starts - first_byte)[:, None] // unit + np.arange(run // unit)
    rows = np.broadcast_to((partitions - first)[:, None], columns.shape)
    inside = (rows >= 0) & (rows < flags.shape[0]) & (columns >= 0) & (columns < flags.shape[1])
    rows, columns = rows[inside], columns[inside]
    held = flags[rows, columns]
    if not held.any():
        return None
    flags[rows, columns] = False
    rows, columns = rows[held], columns[held]
    return (
        first + int(rows.min()),
        first + int(rows.max()) + 1,
        first_byte + int(columns.min()) * unit,
        first_byte + (int(columns.max()) + 1) * unit,
    )
