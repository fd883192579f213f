"""The twin of a storage, in which full precision keeps the digits that a narrower dtype cannot hold.

It is of float32, as AWS documents full precision; in a shadow run (`in_float64`) of float64, also for float32 itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from nkitools.chip.dtypes import DTYPES, DType, float32, float32_in_float64
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.strided_view import StridedView

LOW_PRECISION = frozenset(dtype for dtype in DTYPES.values() if dtype.is_float and dtype is not float32)


WIDE: ContextVar[DType] = ContextVar("wide floats", default=float32)
"""The dtype of the arrays that hold the elements of twins."""


@contextmanager
def in_float64() -> Iterator[None]:
    """Give tensors float64 twins in runs inside the block, float32 tensors too."""
    token = WIDE.set(float32_in_float64)
    try:
        yield
    finally:
        WIDE.reset(token)


def is_widened(dtype: DType) -> bool:
    """Return whether full precision keeps more digits of a dtype than it has."""
    return dtype in LOW_PRECISION or (dtype is float32 and WIDE.get() is not float32)


def is_reinterpreting(tensor: StridedView) -> bool:
    """Return whether a view shows its storage's bytes as another dtype, so that it has no digits beyond that."""
    return tensor.dtype is not tensor.storage.dtype


def twin_of(storage: Storage) -> Storage:
    """Return the twin of a storage, made when an instruction first meets it."""
    if storage.twin is None:
        storage.twin = wide_storage(storage, storage.array, storage.start_partition)
    return storage.twin


def wide_storage(storage: Storage, elements: Array, partition: int) -> Storage:
    """Return a storage that holds ``elements`` of ``storage`` in float32, or in float64."""
    dtype = WIDE.get()
    wide = np.array(elements, dtype.dtype, order="C")
    made = Storage(wide.shape, dtype, storage.memory, array=wide, name=storage.name, start_partition=partition)
    made.id = storage.id  # so that messages have the author's name for it
    return made


def wide_window(tensor: StridedView, twin: Storage) -> tuple[Array, int]:
    """Return the elements of ``tensor`` in the twin, and their byte offset there.

    A view's steps are whole elements of its own dtype.
    """
    itemsize, partition = tensor.dtype.itemsize, tensor.storage.partition_bytes

    def scaled(distance: int) -> int:
        return scaled_distance(distance, partition, twin.partition_bytes, itemsize, twin.dtype.itemsize)

    offset = scaled(tensor.byte_offset)
    return twin.window(tensor.shape, twin.dtype, offset, tuple(map(scaled, tensor.array.strides))), offset


def scaled_distance(distance: int, partition: int, other: int, itemsize: int = 1, other_itemsize: int = 1) -> int:
    """Convert a distance in bytes from a memory with partitions of ``partition`` bytes to one with ``other`` bytes."""
    partitions, rest = divmod(abs(distance), partition)
    moved = partitions * other + rest // itemsize * other_itemsize
    return moved if distance >= 0 else -moved
