"""StridedView, the base of tensors: storage, first byte, shape and strides, reading and writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from nkitools.chip.core import CORE
from nkitools.chip.dtypes import DType
from nkitools.chip.layout import Layout, is_dense, known_layout, layout_of
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.facts import versions
from nkitools.rules.finding import refuse

_new = object.__new__
_BANK_BYTES = 2048  # guards look at the place within a PSUM bank: no more of an offset is kept, and none in SBUF


class Selection(Protocol):
    """A selection of a grid (`nkitools.language.grids`), for messages about the view that is its data."""

    def words(self) -> str:
        """Return ``tile (2, 1) of `x`, rows 256:384, columns 0:512``."""


class StridedView:
    """Elements of a storage: a NumPy view of them (``array``), and its first byte in the storage (``byte_offset``).

    ``direct``: ``array`` may be read and written itself; other views must use ``read`` and ``write``.
    """

    __slots__ = ("_layout", "array", "byte_offset", "dtype", "grid", "shape", "storage")

    direct = True
    grid: Selection  # whose data this view is; other views do not have the attribute, which costs them nothing

    def _set(self, storage: Storage, array: Array, dtype: DType, byte_offset: int) -> None:
        self.storage = storage
        self.array = array
        self.dtype = dtype
        self.shape: tuple[int, ...] = array.shape
        self.byte_offset = byte_offset
        self._layout: Layout | None = None

    @classmethod
    def whole(cls, storage: Storage) -> Self:
        """Return the view of all of a storage."""
        self = cls.__new__(cls)
        self._set(storage, storage.array, storage.dtype, 0)
        return self

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> Self:
        view = _new(type(self))
        view._set(self.storage, array, dtype or self.dtype, byte_offset)
        return view

    def _strided(self, shape: Sequence[int], strides: Sequence[int]) -> Self:
        """Return the view with another shape and other byte strides, from the same first element."""
        sizes, steps = tuple(shape), tuple(strides)
        return self._view(self.storage.window(sizes, self.dtype, self.byte_offset, steps), self.byte_offset)

    @property
    def data(self) -> Self:
        """The tensor itself, so that code takes ``.data`` of grids and of tensors alike; since NKI 0.7 (NK608).

        AWS's example of NkiTileGrid reads it, no page of the tensor names it.
        """
        core, row = CORE.get(), versions.by_full_name()["nki.language.NkiTensor.data"]
        if core is not None and not row.is_in(core.language):
            refuse("NK608", f"{row.shown} {row.absence(core.language)}", remedy=row.instead)
        return self

    @property
    def buffer(self) -> MemoryRegion:
        """The memory that the tensor lives in."""
        return self.storage.memory

    @property
    def name(self) -> str:
        """The debug name given at creation."""
        return self.storage.name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size

    @property
    def on_chip(self) -> bool:
        """Return whether the tensor lies in SBUF or PSUM."""
        return self.storage.on_chip

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each dimension in elements; a partition step counts as the storage's free size."""
        strides, itemsize = self.array.strides, self.dtype.itemsize
        storage = self.storage
        if not storage.on_chip:
            return tuple(stride // itemsize for stride in strides)
        partition_step = strides[0] // storage.partition_bytes * (storage.free_bytes // itemsize)
        return (partition_step, *(stride // itemsize for stride in strides[1:]))

    @property
    def offset(self) -> int:
        """Position of the first element, in elements from the beginning of the storage."""
        storage = self.storage
        partition, rest = divmod(self.byte_offset, storage.partition_bytes)
        return (partition * storage.free_bytes + rest) // self.dtype.itemsize

    @property
    def address(self) -> tuple[int, int]:
        """(partition, byte offset) of the first element; an automatically placed storage begins at (0, 0)."""
        storage = self.storage
        partition, byte = 0, self.byte_offset
        if storage.on_chip:
            partition, byte = divmod(byte, storage.partition_bytes)
        return storage.start_partition + partition, storage.start_byte + byte

    @property
    def layout(self) -> Layout:
        """Return the part of this view that guards may see (interned)."""
        layout = self._layout
        if layout is None:
            storage = self.storage
            shape, strides = self.shape, self.array.strides
            partition, byte, step, to_fit = 0, 0, 1, False
            if storage.on_chip:
                partition, byte = divmod(self.byte_offset, storage.partition_bytes)
                partition += storage.start_partition
                byte = (byte + storage.start_byte) % _BANK_BYTES if storage.memory is MemoryRegion.psum else 0
                if shape[0] > 1:
                    step = strides[0] // storage.partition_bytes
                # At partition 0 it makes no difference: one layout for both, so that plans are shared.
                to_fit = partition > 0 and storage.placed_to_fit
            dtype, memory = self.dtype, storage.memory
            place = partition, byte, step, to_fit, dtype is not storage.dtype
            layout = known_layout((shape, strides, dtype.index, memory, place))
            if layout is None:
                layout = layout_of(shape, strides, dtype, memory, *place)
            self._layout = layout
        return layout

    @property
    def form(self) -> Any:
        """Return the part of a plan's key: the layout, and for views with run-time addresses what guards check of the
        index.
        """
        return self.layout

    def same_place(self, other: StridedView) -> bool:
        """Return whether two views have the same elements in the same order."""
        return (
            self.storage is other.storage and self.byte_offset == other.byte_offset and self.layout is other.layout
        ) and not other.is_indirect()

    def read(self) -> Array:
        """Return the elements, as a NumPy view if possible."""
        return self.array

    def write(self, values: Array) -> None:
        """Put ``values`` (already of this dtype) into the elements."""
        np.copyto(self.array, values)

    def settle(self, what: str) -> None:
        """Move to the current run-time indices, if the view has any; OutOfBounds if they are outside."""

    def unwritten(self) -> Array | None:
        """Return a mask of the elements that were never written; None if all were."""
        return self.storage.unwritten(self.layout, self.byte_offset)

    def where_it_reads(self, mask: Array) -> tuple[StridedView, Array]:
        """Return the view of its tensor that the elements of a mask come from, with a mask over that."""
        return self, mask

    def is_contiguous(self) -> bool:
        """Return whether the view is dense and row-major; on chip the partition dimension does not count."""
        kept = 1 if self.on_chip else 0
        return is_dense(self.shape[kept:], self.array.strides[kept:], self.dtype.itemsize)

    def get_pattern(self) -> list[list[int]]:
        """``[[stride, count], ...]`` in elements, in the order of ``shape``."""
        return [[stride, size] for stride, size in zip(self.strides, self.shape, strict=True)]

    def is_indirect(self) -> bool:
        """Return whether a register or tensor decides at run time which elements the view has."""
        return False
