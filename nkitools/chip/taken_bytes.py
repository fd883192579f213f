"""The bytes of a physical memory that a write takes: boxes of partitions and bytes, or runs of bytes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple

# Partitions and bytes in them: (first, end, first byte, end byte).
Region: TypeAlias = tuple[int, int, int, int]


class Runs(NamedTuple):
    """The contiguous runs of bytes of a view: their partitions, their first bytes there, and their length."""

    partitions: Array
    starts: Array
    length: int


def box_of(layout: Layout, start: int, partition_bytes: int) -> Region | None:
    """Return the region of a view that has all bytes of its region; None for other views."""
    if len(layout.runs) != 1 or layout.partition_step != 1 or not layout.on_chip:
        return None
    partition, byte = divmod(start, partition_bytes)
    return partition, partition + layout.partitions, byte, byte + layout.run


def common(first: Region, second: Region) -> Region | None:
    """Return the region that two regions have in common, if any."""
    begin, end = max(first[0], second[0]), min(first[1], second[1])
    begin_byte, end_byte = max(first[2], second[2]), min(first[3], second[3])
    return (begin, end, begin_byte, end_byte) if begin < end and begin_byte < end_byte else None


def runs_of(layout: Layout, start: int, where: Array | None, partition_bytes: int) -> Runs:
    """Return the contiguous runs of a view, or of its elements with ``where`` true."""
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
    return Runs(partitions, starts, run)


def lower_box(flags: Array) -> Region | None:
    """Clear the flags of a box, and return the region around those that were set; None if none was."""
    rows, columns = np.flatnonzero(flags.any(axis=1)), np.flatnonzero(flags.any(axis=0))
    if not rows.size:
        return None
    flags[...] = False
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def lower_runs(flags: Array, rows: Array, starts: Array, length: int) -> Region | None:
    """Clear the flags of runs as far as they lie inside; return the region as `lower_box` does."""
    columns = starts[:, None] + np.arange(length)
    rows = np.broadcast_to(rows[:, None], columns.shape)
    inside = (rows >= 0) & (rows < flags.shape[0]) & (columns >= 0) & (columns < flags.shape[1])
    rows, columns = rows[inside], columns[inside]
    held = flags[rows, columns]
    if not held.any():
        return None
    flags[rows, columns] = False
    rows, columns = rows[held], columns[held]
    return int(rows.min()), int(rows.max()) + 1, int(columns.min()), int(columns.max()) + 1
