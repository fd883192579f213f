"""Full precision (``NKI_PRECISE_FP=0``): float32 values beside storages of narrower floating-point dtypes.

In a shadow run (`nkitools.chip.twin_storage.in_float64`) they are float64 values, also beside float32. Such a storage
has a twin: a storage of wider elements of the same shape, and each view of the one has a counterpart on the other. The
bytes of the declared dtype are kept current, so that a view with another dtype reads what the chip would have. An
element of the twin is valid as long as it rounds to those bytes. If it does not, other code changed the bytes (another
tensor at that address, an argument that shares the memory, a constant), and the bytes are right.

Source: nki_simulator guide (NKI 0.6), "all low-precision tensors are stored as float32".
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.dtypes import DType
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array, cast
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import (
    is_reinterpreting,
    is_widened,
    scaled_distance,
    twin_of,
    wide_storage,
    wide_window,
)


def wide_of(tensor: NkiTensor) -> NkiTensor | None:
    """Return the float32 like of a low-precision view: on the twin of its storage, of a reinterpreting view a copy.

    None for a view of another dtype.
    """
    if not is_widened(tensor.dtype):
        return None
    twin = None if is_reinterpreting(tensor) else twin_of(tensor.storage)
    if isinstance(tensor, VectorTensor):
        return VectorTensor.of(_like(tensor.rows, twin), tensor.index, tensor.shape[0])
    if isinstance(tensor, ColumnTensor):
        return _columns_like(tensor, twin)
    if isinstance(tensor, MaskedTensor):
        return MaskedTensor.of(_like(tensor, twin), tensor.where)
    return _like(tensor, twin)


def digits_of(tensor: NkiTensor) -> Array:
    """Return the elements of a view; in float32 if full precision keeps more digits of them."""
    wide = None if tensor.storage.twin is None or is_reinterpreting(tensor) else wide_of(tensor)
    if wide is None:
        return tensor.read()
    renew(tensor, wide)
    return wide.read()


def renew(tensor: NkiTensor, wide: NkiTensor) -> None:
    """Copy elements that other code wrote in the declared dtype into the twin."""
    storage = tensor.storage
    if storage.full and storage.on_chip and storage.physical is None:
        return  # there is no other way to a tile of its own
    narrow, digits = _memory(tensor), _memory(wide)
    changed = _bits(_rounded(digits, tensor.dtype)) != _bits(narrow)
    if changed.any():
        np.copyto(digits, narrow, where=changed)
        _put_back(wide, digits)


def round_off(tensor: NkiTensor, wide: NkiTensor) -> None:
    """Round the elements written into the twin's view to the declared dtype."""
    narrow = _memory(tensor)
    np.copyto(narrow, _rounded(_memory(wide), tensor.dtype))
    _put_back(tensor, narrow)
    if is_reinterpreting(tensor):
        forget(tensor)


def forget(tensor: NkiTensor, lanes: Array | None = None) -> None:
    """Drop the further digits of the elements that an instruction has written as declared (``lanes`` of a view)."""
    twin = tensor.storage.twin
    if twin is None:
        return
    wide = None if is_reinterpreting(tensor) else wide_of(tensor)
    if wide is None:
        _forget_bytes(tensor, twin)
        return
    if isinstance(tensor, MaskedTensor):
        lanes = tensor.where if lanes is None else tensor.where & lanes
    digits = _memory(wide)
    whole = lanes is None or isinstance(tensor, (VectorTensor, ColumnTensor))
    np.copyto(digits, _memory(tensor), where=True if whole else lanes)
    _put_back(wide, digits)


def _forget_bytes(tensor: NkiTensor, twin: Storage) -> None:
    """Drop the further digits of all elements that share bytes with a view of another dtype."""
    storage, itemsize = tensor.storage, tensor.storage.dtype.itemsize
    start = scaled_distance(tensor.byte_offset, storage.partition_bytes, storage.free_bytes or 1)
    steps = [
        scaled_distance(stride, storage.partition_bytes, storage.free_bytes or 1) for stride in tensor.array.strides
    ]
    reach = [(size - 1) * step for size, step in zip(tensor.shape, steps, strict=True)]
    first = (start + sum(min(0, each) for each in reach)) // itemsize
    last = -(-(start + sum(max(0, each) for each in reach) + tensor.dtype.itemsize) // itemsize)
    written = np.zeros((last - first) * itemsize, np.bool_)
    each_byte = (*tensor.shape, tensor.dtype.itemsize)
    np.ndarray(each_byte, np.bool_, written, start - first * itemsize, (*steps, 1))[...] = True
    elements = written.reshape(-1, itemsize).any(axis=1)
    np.copyto(twin.array.reshape(-1)[first:last], storage.array.reshape(-1)[first:last], where=elements)


def _like(tensor: NkiTensor, twin: Storage | None) -> NkiTensor:
    """Return the twin's view of the same elements, or a copy without a twin."""
    if twin is None:
        return NkiTensor.whole(wide_storage(tensor.storage, tensor.array, tensor.layout.start_partition))
    view = NkiTensor.__new__(NkiTensor)
    array, offset = wide_window(tensor, twin)
    view._set(twin, array, twin.dtype, offset)
    return view


def _columns_like(tensor: ColumnTensor, twin: Storage | None) -> ColumnTensor:
    """Return the twin's view of the same columns, with the same alignment."""
    view, columns = ColumnTensor.__new__(ColumnTensor), _like(tensor.columns, twin)
    dtype = columns.dtype
    shown = columns.storage.window(tensor.shape, dtype, columns.byte_offset, (columns.array.strides[0], 0))
    view._set(columns.storage, shown, dtype, columns.byte_offset)
    view.columns = columns
    view.index, view.offsets = tensor.index, tensor.offsets
    return view


def _memory(tensor: NkiTensor) -> Array:
    """Return the elements that a view reaches: as they lie in memory, or a copy of the rows that an index names."""
    if isinstance(tensor, VectorTensor):
        return np.asarray(tensor.rows.array[tensor.chosen()[0]])
    return tensor.columns.array if isinstance(tensor, ColumnTensor) else tensor.array


def _put_back(tensor: NkiTensor, elements: Array) -> None:
    """Write a copy from `_memory` back."""
    if isinstance(tensor, VectorTensor):
        tensor.rows.array[tensor.chosen()[0]] = elements


def _rounded(values: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):  # what a narrow dtype cannot hold is no mistake of the host
        return cast(values, dtype)


def _bits(values: Array) -> Array:
    return values.view(f"u{values.itemsize}")
