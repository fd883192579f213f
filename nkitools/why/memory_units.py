"""The memories of a record in units: blocks of bytes, equal in size, that every access covers whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from math import gcd

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import Part
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import parts_of_plans
from nkitools.record.last_writer import bytes_of
from nkitools.record.record import Record
from nkitools.record.rows import Access, layout_column, storage_column

Memory = tuple[str, int]
"""A storage by its id, or by a number the memory whose bytes several storages share."""

_STRETCH = 64  # writes to a storage that are searched first


class Memories:
    """The memories of one record: their units, and the instructions that write to each."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.columns = Columns(record)
        self._units: dict[Memory, int] = {}

    def memory_of(self, storage: int) -> Memory:
        """Return the memory that a storage lies in."""
        known = self.record.storages.get(storage)
        return ("storage", storage) if known is None or known.place < 0 else ("place", known.place)

    def first_byte(self, access: Access) -> int:
        """Return the byte of its memory at which a view begins."""
        return access.byte_offset + self._origin(access.storage)

    def _origin(self, storage: int) -> int:
        """Return the byte of its memory at which a storage begins."""
        known = self.record.storages.get(storage)
        return 0 if known is None or known.place < 0 else known.first_byte

    def storages_of(self, memory: Memory) -> list[int]:
        """Return the storages that lie in a memory."""
        return [memory[1]] if memory[0] == "storage" else self._sharing[memory[1]]

    @cached_property
    def _sharing(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for storage, known in self.record.storages.items():
            if known.place >= 0:
                found.setdefault(known.place, []).append(storage)
        return found

    def unit(self, memory: Memory) -> int:
        """Return the size of a memory's units in bytes."""
        if memory not in self._units:
            found = 0
            for storage in self.storages_of(memory):
                origin = self._origin(storage)
                found = gcd(found, origin, *self._steps.of(storage).reshape(-1).tolist())
            self._units[memory] = found or 1
        return self._units[memory]

    @cached_property
    def _steps(self) -> _ByStorage:
        """By storage, the largest number of bytes that divides the offsets and the sizes of all accessed elements."""
        columns, indices = self.columns, np.array(self.record.beside.indices, np.int64).reshape(-1, 3)
        outputs = np.array([(each.storage, each.layout.id, each.byte_offset) for each in self.record.outputs], np.int64)
        outputs = outputs.reshape(-1, 3)
        storages = np.concatenate((columns.storages, storage_column(indices[:, 1]), outputs[:, 0]))
        layouts = np.concatenate((columns.layouts, layout_column(indices[:, 1]), outputs[:, 1]))
        offsets = np.concatenate((columns.byte_offsets, indices[:, 2], outputs[:, 2]))
        numbers, which = np.unique(layouts, return_inverse=True)
        grains = np.array([_grain(LAYOUTS[each]) for each in numbers.tolist()], np.int64)
        steps = np.gcd(grains[which.reshape(-1)], offsets) if numbers.size else offsets
        return _ByStorage(storages, steps[None]).reduced(np.gcd)

    def units_of(self, access: Access, mask: Array | None = None) -> Array:
        """Return the units of the elements of a view, or of those in a mask, sorted."""
        starts = bytes_of(access.layout) if mask is None else starts_of(access.layout, mask)
        return np.unique(self.every_unit(access, starts.reshape(-1)))

    def every_unit(self, access: Access, starts: Array) -> Array:
        """Return the units of a view's elements, one element after the other.

        ``starts``: the first byte of each element, counted from the view's first element.
        """
        unit = self.unit(self.memory_of(access.storage))
        firsts = (starts + self.first_byte(access)) // unit
        width = access.layout.dtype.itemsize // unit
        return firsts if width <= 1 else (firsts[:, None] + np.arange(width)).reshape(-1)

    def element_of(self, access: Access, units: Array) -> Array:
        """Return for each unit the number, in C order, of the view's element that contains it; -1 if none does."""
        layout = access.layout
        behind = units * self.unit(self.memory_of(access.storage)) - self.first_byte(access)
        if layout.injective:
            return _numbers(layout, behind)
        # The last of several elements that share a byte is written last.
        wide = (bytes_of(layout)[..., None] + np.arange(layout.dtype.itemsize)).reshape(-1)
        order = np.argsort(wide, kind="stable")
        places = np.searchsorted(wide[order], behind, "right") - 1
        found = order[places]
        return np.where((places >= 0) & (wide[found] == behind), found // layout.dtype.itemsize, -1)

    def writers_of(self, memory: Memory, before: int, units: Array) -> Iterator[int]:
        """Yield the positions of instructions before ``before`` that may write to some of ``units``, the latest first.

        The search goes back in stretches, as the latest writers are often all that a caller takes.
        """
        unit = self.unit(memory)
        low, high = int(units[0]) * unit, int(units[-1] + 1) * unit
        columns = [(*self._writes.of(storage), self._origin(storage)) for storage in self.storages_of(memory)]
        ends, size = [int(np.searchsorted(positions, before)) for positions, _, _, _ in columns], _STRETCH
        while any(ends):
            # All writes from here on to the last ones that were searched: those of the storage with the latest ones.
            start = max(int(each[0][max(0, end - size)]) for each, end in zip(columns, ends, strict=True) if end)
            found = []
            for at, (positions, lows, highs, first) in enumerate(columns):
                begin, end = int(np.searchsorted(positions, start)), ends[at]
                reached = (lows[begin:end] + first < high) & (highs[begin:end] + first > low)
                found.append(positions[begin:end][reached])
                ends[at] = min(begin, end)
            every = found[0] if len(found) == 1 else np.concatenate(found)
            yield from np.unique(every)[::-1].tolist()
            size *= 4

    @cached_property
    def _writes(self) -> _ByStorage:
        """The writes to each storage: position, first byte, and the byte after the last."""
        columns = self.columns
        writes = columns.of_plans(lambda plan: [each and not plan.names_only for each in plan.written])
        numbers, which = np.unique(columns.layouts[writes], return_inverse=True)
        reach = np.array([_reach(LAYOUTS[each]) for each in numbers.tolist()], np.int64).reshape(-1, 2)
        rows = (columns.positions[writes], *(columns.byte_offsets[writes] + reach[which.reshape(-1)].T))
        return _ByStorage(columns.storages[writes], np.stack(rows))

    @cached_property
    def _plan_parts(self) -> dict[tuple[int, int], Part]:
        found = parts_of_plans(self.record)
        return {(plan, operand): part for plan, parts in found.items() for operand, part in parts}

    def part(self, position: int, plan: int, operand: int) -> Part | None:
        """Return the elements that an operand touches; None for all of its view."""
        part = self.record.beside.part(position, operand)
        return self._plan_parts.get((plan, operand)) if part is None else part

    @cached_property
    def indices(self) -> dict[int, list[Access]]:
        """The views that instructions read as an index or an address, by their positions."""
        found: dict[int, list[Access]] = {}
        indices = np.array(self.record.beside.indices, np.int64).reshape(-1, 3)
        columns = (indices[:, 0], storage_column(indices[:, 1]), layout_column(indices[:, 1]), indices[:, 2])
        for position, storage, layout, offset in zip(*(each.tolist() for each in columns), strict=True):
            found.setdefault(position, []).append(Access(storage, LAYOUTS[layout], offset, written=False))
        return found

    @cached_property
    def registers(self) -> dict[int, list[int]]:
        """The positions of the instructions that made the registers and engine states which each instruction reads."""
        return _by_first(self.record.beside.flow)


class _ByStorage:
    """Columns of accesses, grouped by storage."""

    def __init__(self, storages: Array, columns: Array) -> None:
        order = np.argsort(storages, kind="stable")
        self._storages, firsts = np.unique(storages[order], return_index=True)
        self._bounds = np.append(firsts, storages.size)
        self._columns = columns[:, order]

    def of(self, storage: int) -> Array:
        """Return the columns of a storage."""
        at = int(np.searchsorted(self._storages, storage))
        if at == self._storages.size or self._storages[at] != storage:
            return self._columns[:, :0]
        return self._columns[:, self._bounds[at] : self._bounds[at + 1]]

    def reduced(self, operation: np.ufunc) -> _ByStorage:
        """Reduce the columns of each storage to one by ``operation``, in place."""
        if self._storages.size:
            self._columns = operation.reduceat(self._columns, self._bounds[:-1], axis=1)
            self._bounds = np.arange(self._storages.size + 1)
        return self


def _by_first(pairs: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for later, earlier in np.array(pairs, np.int64).reshape(-1, 2).tolist():
        found.setdefault(later, []).append(earlier)
    return found


def _grain(layout: Layout) -> int:
    return gcd(layout.dtype.itemsize, *(stride for size, stride in zip(layout.shape, layout.strides, strict=True)))


def _reach(layout: Layout) -> tuple[int, int]:
    """Return the first byte of a view and the byte after its last, counted from its first element.

    Without limits for a stride of 0, as of an element that an index chose.
    """
    dimensions = list(zip(layout.shape, layout.strides, strict=True))
    if any(size > 1 and not stride for size, stride in dimensions):
        return -(1 << 60), 1 << 60
    low = sum(min(0, (size - 1) * stride) for size, stride in dimensions)
    return low, sum(max(0, (size - 1) * stride) for size, stride in dimensions) + layout.dtype.itemsize


def starts_of(layout: Layout, mask: Array) -> Array:
    """Return the first byte of each element of a mask, counted from the view's first element."""
    found: Array = np.zeros(int(np.count_nonzero(mask)), np.int64)
    for indices, stride in zip(np.nonzero(mask), layout.strides, strict=True):
        found += indices * stride
    return found


def _numbers(layout: Layout, behind: Array) -> Array:
    """Return the number of the element that contains each byte, -1 if none does; the elements share no bytes."""
    rest, inside, number = behind, behind >= 0, np.zeros_like(behind)
    counts = np.cumprod([1, *layout.shape[:0:-1]])[::-1].tolist()
    axes = [axis for axis, size in enumerate(layout.shape) if size > 1]
    for axis in sorted(axes, key=lambda each: -layout.strides[each]):
        index, rest = np.divmod(rest, layout.strides[axis])
        inside = inside & (index < layout.shape[axis])
        number += index * counts[axis]
    return np.where(inside & (rest < layout.dtype.itemsize), number, -1)
