"""The instructions of one record by what they do: loads, copies out of PSUM, and what repeats a load."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import prod

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns, programs_at
from nkitools.record.dependences import CompressedRows
from nkitools.record.instruction_record import RecordedPlan
from nkitools.timing.repeated import mixed, sums


class Operations:
    """The instructions of one record; positions are those in the record."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def named(self, *names: str) -> Array:
        """Return the positions of the instructions of some names."""
        return self._of_plans(lambda plan: plan.name in names)

    def on_engines(self, *engines: str) -> Array:
        """Return the positions of the instructions whose definition names one of some engines."""
        return self._of_plans(lambda plan: plan.engine in engines)

    def _of_plans(self, holds: Callable[[RecordedPlan], bool]) -> Array:
        return np.flatnonzero(self.columns.of_each_plan(holds))

    @cached_property
    def _memories(self) -> Array:
        """Return the memory of each operand, by its place among the memories."""
        order = list(MemoryRegion)
        return self.columns.of_layouts(lambda layout: order.index(layout.memory))

    def _is_in(self, operands: Array, *memories: MemoryRegion) -> Array:
        order = list(MemoryRegion)
        return np.isin(self._memories[operands], [order.index(each) for each in memories])

    @cached_property
    def loads(self) -> Array:
        """Return the positions of the transfers from HBM to SBUF."""
        found = self.named("dma_copy")
        firsts = self.columns.first_operands[found]
        on_chip = MemoryRegion.sbuf, MemoryRegion.psum
        return np.asarray(found[self._is_in(firsts, *on_chip) & ~self._is_in(firsts + 1, *on_chip)])

    @cached_property
    def renewals(self) -> Array:
        """Return the positions of the memsets that fill a whole tile in PSUM, without an address.

        Nothing that the tile held is read again: from there on the compiler may give it other bytes.
        """
        found, columns = self.named("memset"), self.columns
        found = found[self._is_in(columns.first_operands[found], MemoryRegion.psum)]
        places = columns.first_operands[found]
        tiles = zip(columns.storages[places].tolist(), columns.layouts[places].tolist(), strict=True)
        known = ((columns.record.storages.get(storage), LAYOUTS[layout]) for storage, layout in tiles)
        whole = [
            tile is not None and not tile.has_address and layout.elements == prod(tile.shape) for tile, layout in known
        ]
        return np.asarray(found[np.array(whole, np.bool_)])

    @cached_property
    def evacuations(self) -> Array:
        """Return the positions of the copies from PSUM to SBUF."""
        found = self.named("tensor_copy")
        firsts = self.columns.first_operands[found]
        return np.asarray(found[self._is_in(firsts, MemoryRegion.sbuf) & self._is_in(firsts + 1, MemoryRegion.psum)])

    @cached_property
    def copies(self) -> Array:
        """Return the positions of the copies from SBUF to SBUF."""
        found = self.named("tensor_copy")
        firsts = self.columns.first_operands[found]
        return np.asarray(found[self._is_in(firsts, MemoryRegion.sbuf) & self._is_in(firsts + 1, MemoryRegion.sbuf)])

    def reloads(self, flow: CompressedRows, base: int) -> Array:
        """Return the positions of the loads of elements that an earlier load of the same program has brought to SBUF.

        ``base``: the position of the record's first instruction in ``flow``.
        """
        columns, loads = self.columns, self.loads
        if not loads.size:
            return loads
        sources = columns.first_operands[loads] + 1
        tiles = (each[sources] for each in (columns.storages, columns.layouts, columns.byte_offsets))
        programs = programs_at(columns.record, loads)
        keys = mixed(*tiles, programs) ^ sums(mixed(flow.sources), flow.starts)[base + loads]
        _, firsts = np.unique(keys, return_index=True)
        return np.delete(loads, firsts)
