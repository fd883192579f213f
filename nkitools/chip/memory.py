"""The memories of a core: storage, where it lies, and which of its elements have been written."""

from __future__ import annotations

import itertools
import math
from enum import Enum
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array

POISON_INTEGER = 4  # what AWS's simulator leaves in unwritten integers (nki_simulator guide)


class MemoryRegion(Enum):
    """Where a tensor lives. ``nl.hbm`` is an alias of ``private_hbm``."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def __repr__(self) -> str:
        return f"nl.{self.value}"


ON_CHIP = frozenset({MemoryRegion.sbuf, MemoryRegion.psum})
_ids = itertools.count()


class Layout:
    """What guards may know of a view: interned, so that equal layouts are one object and hash by identity.

    ``strides`` and ``free_offset`` are in bytes; ``start_partition`` and ``free_offset`` (within its PSUM bank) are 0 in HBM.
    """

    __slots__ = (
        "contiguous",
        "dtype",
        "elements",
        "free_elements",
        "free_offset",
        "id",
        "injective",
        "memory",
        "on_chip",
        "partitions",
        "shape",
        "span",
        "start_partition",
        "strides",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        start_partition: int,
        free_offset: int,
    ) -> None:
        self.id = len(_layouts)
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.memory = memory
        self.on_chip = memory in ON_CHIP
        self.start_partition = start_partition
        self.free_offset = free_offset
        self.elements = math.prod(shape)
        self.partitions = shape[0]
        self.free_elements = math.prod(shape[1:])
        self.injective = _injective(shape, strides, dtype.itemsize)
        self.contiguous = _contiguous(shape, strides, dtype.itemsize)
        self.span = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + dtype.itemsize


_layouts: dict[tuple[Any, ...], Layout] = {}
LAYOUTS: list[Layout] = []


def _injective(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether no two indices name the same byte (sufficient condition: each stride clears everything inside it)."""
    reach = itemsize
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride < reach:
                return False
            reach = stride * (size - 1) + reach
    return True


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    expected = itemsize
    for stride, size in zip(reversed(strides), reversed(shape), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def layout_of(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    memory: MemoryRegion,
    start_partition: int,
    free_offset: int,
) -> Layout:
    """The one Layout of these properties."""
    key = (shape, strides, dtype.index, memory, start_partition, free_offset)
    layout = _layouts.get(key)
    if layout is None:
        layout = Layout(shape, strides, dtype, memory, start_partition, free_offset)
        _layouts[key] = layout
        LAYOUTS.append(layout)
    return layout


class Storage:
    """Bytes in one memory, and which of their elements were ever written.

    ``array`` is the whole storage as allocated. The written state is ``full`` (everything was written), else a prefix of
    bytes (``written_bytes``) as long as writes arrive in order, else one flag for each ``unit`` bytes.
    """

    __slots__ = (
        "_remaining",
        "array",
        "dtype",
        "excused",
        "free_bytes",
        "full",
        "id",
        "matmul_group",
        "memory",
        "name",
        "nbytes",
        "origin",
        "partition_bytes",
        "shape",
        "site",
        "start_byte",
        "start_partition",
        "unit",
        "written",
        "written_bytes",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        *,
        array: Array | None = None,
        name: str = "",
        site: int = -1,
        start_partition: int = 0,
        start_byte: int = 0,
    ) -> None:
        self.id = next(_ids)
        self.shape = shape
        self.dtype = dtype
        self.memory = memory
        self.name = name
        self.site = site
        self.start_partition = start_partition
        self.start_byte = start_byte
        self.full = array is not None
        self.array = np.empty(shape, dtype.dtype) if array is None else array
        self.nbytes = self.array.nbytes
        self.free_bytes = self.nbytes // shape[0] if shape and shape[0] else self.nbytes
        self.partition_bytes = self.array.strides[0] if memory in ON_CHIP and shape[0] else self.free_bytes
        self.written: Array | None = None
        self.written_bytes = 0
        self.unit = dtype.itemsize
        self._remaining = self.nbytes
        self.origin: Any = None
        self.excused: set[str] = set()
        self.matmul_group = False

    @property
    def untouched(self) -> bool:
        """Whether nothing was ever written."""
        return self.written is None and self.written_bytes == 0 and not self.full

    # --- written state -------------------------------------------------------------------------------------------

    def mark_written(self, layout: Layout, byte_offset: int, where: Array | None = None) -> None:
        """Remember that a view was written (``where``: only its true lanes)."""
        size = layout.elements * layout.dtype.itemsize
        if where is None and layout.injective:
            if size == self.nbytes:
                self._fill()
                return
            if self.written is None and layout.contiguous and byte_offset == self.written_bytes and self._packed:
                self.written_bytes += size
                if self.written_bytes == self.nbytes:
                    self._fill()
                return
        flags = self._flags(layout, byte_offset)
        if where is None:
            flags[...] = 1
        else:
            np.copyto(flags, np.uint8(1), where=where[..., None])
        self._remaining -= size
        if self._remaining <= 0:
            self._recount()

    def mark_unwritten(self, layout: Layout, byte_offset: int, where: Array) -> None:
        """Forget the true lanes of a view: an undefined value has been put there."""
        if where.any():
            np.copyto(self._flags(layout, byte_offset), np.uint8(0), where=where[..., None])
            self._remaining = max(self._remaining, 1)

    def unwritten(self, layout: Layout, byte_offset: int) -> Array | None:
        """A mask of the view's elements that were never written, or None where all were."""
        if self.full:
            return None
        if self.written is None and self._packed and byte_offset + layout.span <= self.written_bytes:
            return None
        missing = np.asarray(~self._flags(layout, byte_offset).all(axis=-1))
        return missing if missing.any() else None

    @property
    def _packed(self) -> bool:
        return self.partition_bytes == self.free_bytes

    def _fill(self) -> None:
        self.full = True
        self.written = None

    def _flags(self, layout: Layout, byte_offset: int) -> Array:
        """The flags of a view, with one more axis: the units of each element."""
        self._materialise(layout.dtype.itemsize)
        assert self.written is not None
        unit = self.unit
        strides = [stride // unit for stride in layout.strides]
        if not self._packed:
            partition, rest = divmod(byte_offset, self.partition_bytes)
            byte_offset = partition * self.free_bytes + rest
            strides[0] = layout.strides[0] // self.partition_bytes * (self.free_bytes // unit)
        units = layout.dtype.itemsize // unit
        return np.ndarray(
            (*layout.shape, units), np.uint8, self.written, offset=byte_offset // unit, strides=(*strides, 1)
        )

    def _materialise(self, itemsize: int) -> None:
        """One flag for each ``unit`` bytes, refined where a view looks at smaller elements than any before."""
        if self.written is None:
            self.unit = min(self.unit, itemsize)
            self.written = np.zeros(self.nbytes // self.unit, np.uint8)
            if self.full:
                self.written[:] = 1
                self.full = False
            self.written[: self.written_bytes // self.unit] = 1
            self._remaining = self.nbytes - self.written_bytes
        elif itemsize < self.unit:
            self.written = np.repeat(self.written, self.unit // itemsize)
            self.unit = itemsize

    def _recount(self) -> None:
        assert self.written is not None
        self._remaining = (self.written.size - int(np.count_nonzero(self.written))) * self.unit
        if self._remaining == 0:
            self._fill()

    def poison_unwritten(self) -> None:
        """Put the sentinel into what was never written: NaN for floats, 4 for integers, as AWS's simulator does."""
        if self.full or self.dtype.kind == "packed":
            return
        self._materialise(self.dtype.itemsize)
        assert self.written is not None
        flags = self.written.reshape(*self.shape, self.dtype.itemsize // self.unit)
        sentinel = np.nan if self.dtype.is_float else POISON_INTEGER
        np.copyto(self.array, np.asarray(sentinel).astype(self.dtype.dtype), where=~flags.all(axis=-1))
