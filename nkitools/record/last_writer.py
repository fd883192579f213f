"""The last writer of an element: asked of the record of a run, also of a saved one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.dataflow.last_accesses import MAY_WRITE, WRITES
from nkitools.record.record import Record
from nkitools.record.rows import Access


@dataclass(frozen=True)
class Writer:
    """The last instruction that wrote an element: its position in the record, the shape of the written tile, and the
    place.

    ``index`` is the element's in that tile. ``is_certain`` is False where a mask or run-time indices chose the elements
    it wrote, which the record does not keep: then it may be an earlier one, and of a scatter there is no ``index``.
    """

    position: int
    shape: tuple[int, ...]
    index: tuple[int, ...] | None
    is_certain: bool


@dataclass(frozen=True, eq=False)
class _Write:
    position: int
    layout: Layout
    byte_offset: int
    part: Part | None
    is_certain: bool

    def holds(self, byte: int) -> tuple[bool, tuple[int, ...] | None]:
        """Return whether the byte was written, and the index of its element in the view where that is known."""
        part = self.part
        if part is None and self._may_be_anywhere:
            return True, None
        index = index_of(self.layout if part is None else part.layout, byte - self.byte_offset)
        if index is None or (part is not None and not part.touches(index)):
            return False, None
        return True, index if part is None or part.bits is not None else None

    @property
    def _may_be_anywhere(self) -> bool:
        """Return whether an index on the device has chosen the elements, which old saved runs do not keep."""
        dimensions = zip(self.layout.shape, self.layout.strides, strict=True)
        return any(stride == 0 and size > 1 for size, stride in dimensions)


def _writes(record: Record, columns: Columns, storage: int) -> Iterator[_Write]:
    """Yield the writes to a storage, the last one first."""
    accesses = Accesses(record, columns)
    for at in np.flatnonzero((accesses.storages == storage) & ((accesses.kinds & (WRITES | MAY_WRITE)) != 0))[::-1]:
        number = int(accesses.numbers[at])
        yield _Write(
            int(accesses.positions[at]),
            LAYOUTS[int(accesses.layouts[at])],
            int(accesses.byte_offsets[at]),
            None if number < 0 else accesses.parts[number],
            not accesses.kinds[at] & MAY_WRITE,
        )


def last_writer(record: Record, access: Access, index: tuple[int, ...]) -> Writer | None:
    """Return the last writer of the element at ``index`` of a view; None where none did (an argument)."""
    byte = access.byte_offset + sum(at * stride for at, stride in zip(index, access.layout.strides, strict=True))
    asked: dict[tuple[Layout, int, Part | None], tuple[bool, tuple[int, ...] | None]] = {}
    for write in _writes(record, Columns(record), access.storage):
        key = (write.layout, write.byte_offset, write.part)
        if key not in asked:
            asked[key] = write.holds(byte)
        is_there, found = asked[key]
        if is_there:
            is_certain = write.is_certain and not (write.part is None and found is None)
            return Writer(write.position, write.layout.shape, found, is_certain)
    return None


def last_writers(record: Record, columns: Columns, access: Access, nbytes: int) -> Array:
    """Return for each element of a view the position of the last instruction that may have written it; -1 for none.

    ``nbytes``: of the storage of the view, which lies in HBM.
    """
    writes = list(_writes(record, columns, access.storage))[::-1]
    unit = gcd(access.byte_offset, *_grains(access.layout))
    for write in writes:
        unit = gcd(unit, write.byte_offset, *_grains(write.layout if write.part is None else write.part.layout))
    last = np.full(nbytes // unit, -1, np.int64)
    for write in writes:
        part = write.part
        view = _units(last, write.layout if part is None else part.layout, write.byte_offset, unit)
        if part is None:
            view[...] = write.position
        elif part.bits is None:
            view[part.rows if part.rows is not None else (slice(None), part.columns)] = write.position
        else:
            view[part.lanes] = write.position
    return np.asarray(_units(last, access.layout, access.byte_offset, unit)[..., 0])


def _grains(layout: Layout) -> tuple[int, ...]:
    return layout.dtype.itemsize, *layout.strides


def _units(elements: Array, layout: Layout, byte_offset: int, unit: int) -> Array:
    """Return the units of a storage that a view shows, those of an element along the last axis."""
    width = elements.itemsize
    strides = (*(stride // unit * width for stride in layout.strides), width)
    shape = (*layout.shape, layout.dtype.itemsize // unit)
    return np.ndarray(shape, elements.dtype, elements, byte_offset // unit * width, strides)


def index_of(layout: Layout, byte: int) -> tuple[int, ...] | None:
    """Return the index of the element that has this byte, counted from the view's first element; None where none has.

    Of views whose dimensions lie inside each other, as those of tiles do; any of several where elements share bytes.
    """
    low = sum((size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True) if stride < 0)
    rest = byte - low
    if rest < 0:
        return None
    found = [0] * len(layout.shape)
    for axis in sorted(range(len(found)), key=lambda axis: -abs(layout.strides[axis])):
        size, stride = layout.shape[axis], abs(layout.strides[axis])
        steps = min(rest // stride, size - 1) if stride else 0
        rest -= steps * stride
        found[axis] = steps if layout.strides[axis] >= 0 else size - 1 - steps
    return tuple(found) if rest < layout.dtype.itemsize else None
