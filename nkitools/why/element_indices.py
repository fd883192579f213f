"""The indices of elements in their tensor, by the bytes where they lie."""

from __future__ import annotations

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.record.record import StorageRecord
from nkitools.record.rows import Access


def form_of(known: StorageRecord | None, access: Access) -> tuple[tuple[int, ...], int]:
    """Return the shape of a tensor and the bytes of an element; those of the view if the tensor is unknown."""
    if known is None:
        return access.layout.shape, access.layout.dtype.itemsize
    return known.shape, as_dtype(known.dtype).itemsize


def indices_of(known: StorageRecord | None, shape: tuple[int, ...], item: int, bytes_: Array) -> Array:
    """Return for each byte a row: the index in the tensor of the element that contains it. ``item``: its size."""
    if known is not None and known.partition_bytes:
        partitions, rest = np.divmod(bytes_, known.partition_bytes)
        free = np.unravel_index(rest // item, shape[1:]) if len(shape) > 1 else ()
        return np.stack((partitions, *free), axis=-1)
    return np.stack(np.unravel_index(bytes_ // item, shape), axis=-1)
