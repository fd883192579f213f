"""A brute-force model of what each element of a run was made of: every byte of every tensor names its maker.

It walks through the instructions one after the other and asks the element map of each for one element at a time. It
shares nothing with the search for writers: no dependences, no pieces of memory, no index of what is written where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.record.rows import Access, layout_column, storage_column

GIVEN, UNWRITTEN = -1, -2
Made = tuple[int, int, str, int]  # record, position, result, element of its view
Leaf = tuple[int, int, int, int]  # GIVEN or UNWRITTEN, record, memory (below 0 one that storages share), byte


class Taint:
    """The makers of all bytes at the end of a run, and of what each instruction has read.

    ``chosen``: the rows (0) and columns (1) that every index of the run names.
    """

    def __init__(self, run: Any, chosen: Mapping[int, tuple[int, ...]]) -> None:
        self.records, self.chosen = run.all_records, chosen
        self.ids: dict[Any, int] = {}
        self.names: list[Any] = []
        self.holders: list[dict[int, dict[int, int]]] = [{} for _ in self.records]
        self.read: dict[tuple[int, int, str], Any] = {}  # ids of the makers of each element of an operand
        self.indices: dict[tuple[int, int], list[Any]] = {}
        self.registers: list[dict[int, list[int]]] = []
        for number, record in enumerate(self.records):
            self._walk(number, record)
        self.edges: dict[int, set[int]] = {}

    def _id(self, key: Any) -> int:
        if key not in self.ids:
            self.ids[key] = len(self.names)
            self.names.append(key)
        return self.ids[key]

    def _bytes(self, number: int, access: Any, layout: Any = None) -> tuple[Any, Any]:
        """The makers of a memory, and the numbers of the bytes of a view of it: (elements of the view, bytes)."""
        record, layout = self.records[number], layout or access.layout
        known = record.storages.get(access.storage)
        shared = known is not None and known.place >= 0
        memory = -2 - known.place if shared else access.storage
        first = access.byte_offset
        if shared:
            first += known.start_partition * known.partition_bytes + known.start_byte
        found = first + np.zeros((), np.int64)
        for size, stride in zip(layout.shape, layout.strides, strict=True):
            found = found[..., None] + np.arange(size) * stride
        found = found[..., None] + np.arange(layout.dtype.itemsize)
        holders = self.holders[number].setdefault(memory, {})
        is_given = known is None or known.is_given
        for byte in found.reshape(-1).tolist():
            if byte not in holders:
                holders[byte] = self._id((GIVEN if is_given else UNWRITTEN, number, memory, byte))
        return holders, found

    def _view(self, number: int, position: int, operand: int, access: Any) -> Any:
        """The bytes of an operand's elements, those that an index chooses too."""
        part = self.records[number].beside.part(position, operand)
        if part is None or part.bits is not None:
            return self._bytes(number, access)
        axis = 0 if part.columns is None else 1
        holders, found = self._bytes(number, access, part.layout)
        count = access.layout.shape[axis]
        return holders, np.take(found, self.chosen[axis][:count], axis=axis)

    def _walk(self, number: int, record: Any) -> None:
        pairs = np.array(record.beside.flow, np.int64).reshape(-1, 2).tolist()
        made_by: dict[int, list[int]] = {}
        for later, earlier in pairs:
            made_by.setdefault(later, []).append(earlier)
        self.registers.append(made_by)
        views: dict[int, list[Any]] = {}
        table = np.array(record.beside.indices, np.int64).reshape(-1, 3)
        columns = table[:, 0], storage_column(table[:, 1]), layout_column(table[:, 1]), table[:, 2]
        for position, storage, layout, offset in zip(*(each.tolist() for each in columns), strict=True):
            views.setdefault(position, []).append(Access(storage, LAYOUTS[layout], offset, False))
        for position in range(record.count):
            self._issue(number, position, views.get(position, []))

    def _issue(self, number: int, position: int, views: list[Any]) -> None:
        """Note who has made what an instruction reads, then let it be the maker of what it writes."""
        record = self.records[number]
        row = record.row(position)
        plan, accesses = row.plan, row.accesses()
        for operand, (name, access) in enumerate(zip(plan.operands, accesses, strict=True)):
            self.read[number, position, name] = self._makers(*self._view(number, position, operand, access))
        for access in views:
            makers = self._makers(*self._bytes(number, access))
            self.indices.setdefault((number, position), []).append((access, makers))
        if plan.names_only:
            return
        for operand, (name, access) in enumerate(zip(plan.operands, accesses, strict=True)):
            if access.written:
                holders, found = self._view(number, position, operand, access)
                lanes, elements = self._lanes(number, position, name), found.reshape(-1, found.shape[-1])
                for element in np.flatnonzero(lanes).tolist():
                    maker = self._id((number, position, name, element))
                    holders.update(dict.fromkeys(elements[element].tolist(), maker))

    @staticmethod
    def _makers(holders: dict[int, int], found: Any) -> Any:
        makers = [holders[byte] for byte in found.reshape(-1).tolist()]
        return np.array(makers, np.int64).reshape(-1, found.shape[-1])

    # --- backward ---------------------------------------------------------------------------------------------------

    def sources(self, node: int) -> set[int]:
        """The makers of everything that one element was made of."""
        if node not in self.edges:
            key = self.names[node]
            self.edges[node] = set() if key[0] < 0 else self._sources(*key)
        return self.edges[node]

    def _sources(self, number: int, position: int, result: str, element: int) -> set[int]:
        record = self.records[number]
        row = record.row(position)
        plan, accesses = row.plan, row.accesses()
        shapes = {name: access.layout.shape for name, access in zip(plan.operands, accesses, strict=True)}
        shapes |= dict.fromkeys(plan.registers, ())
        found: set[int] = set()
        stated = dict(plan.elements.made)
        if result in stated:
            wanted = np.zeros(shapes[result], bool)
            wanted.reshape(-1)[element] = True
            for source, mask in plan.elements.sources(result, wanted, shapes, {}).items():
                if source.operand in plan.operands:
                    found |= self._of(number, position, source, mask)
        else:
            for name in plan.operands:
                makers = self.read[number, position, name]
                found |= set(makers[self._lanes(number, position, name).reshape(-1)].reshape(-1).tolist())
        for earlier in self.registers[number].get(position, ()):
            before = record.plan_at(earlier)
            made = dict(before.elements.made)
            if not made or any(name in made for name in before.registers):
                name = next((name for name in before.registers if name in made), "")
                found.add(self._id((number, earlier, name, 0)))
        return found | self._chosen_by(number, position, plan, accesses, result, element)

    def _lanes(self, number: int, position: int, name: str) -> Any:
        record = self.records[number]
        row = record.row(position)
        operand = row.plan.operands.index(name)
        shape = row.access(operand).layout.shape
        part = record.beside.part(position, operand)
        if part is not None and part.lanes is not None:
            return part.lanes
        touched = row.plan.touches[operand] if row.plan.touches and row.plan.chooses is None else None
        return np.ones(shape, bool) if touched is None else np.broadcast_to(touched, shape)

    def _of(self, number: int, position: int, source: Any, mask: Any) -> set[int]:
        at = number, position
        if source.rank is not None or source.core is not None:
            at = self._met(number, position, source)
        lit = mask & self._lanes(*at, source.operand)
        record = self.records[at[0]]
        row = record.row(at[1])
        operand, plan = row.plan.operands.index(source.operand), row.plan
        makers = self.read[*at, source.operand][lit.reshape(-1)]
        if row.access(operand).written and plan.wants_fresh and not plan.adds_always:
            # Only what the same tensor has got counts: where nothing was written, nothing is added to.
            storage = row.access(operand).storage
            makers = np.array([each for each in makers.reshape(-1).tolist() if self._is_own(each, storage)], np.int64)
        return set(makers.reshape(-1).tolist())

    def _is_own(self, node: int, storage: int) -> bool:
        key = self.names[node]
        if key[0] < 0:
            return bool(key[0] == GIVEN)
        row = self.records[key[0]].row(key[1])
        return bool(row.access(row.plan.operands.index(key[2])).storage == storage)

    def _met(self, number: int, position: int, source: Any) -> tuple[int, int]:
        """The instruction of the rank or core that met this one: they have met equally often before."""
        mine = next(each for each in self.records[number].beside.transfers if each.position == position)
        for other, record in enumerate(self.records):
            for each in record.beside.transfers:
                is_rank = source.rank is None or (record.rank or 0) == source.rank
                is_core = source.core is None or record.program_at(each.position)[-1] == source.core
                turns = self._turn(record, each), self._turn(self.records[number], mine)
                if is_rank and is_core and each.members == mine.members and turns[0] == turns[1]:
                    return other, each.position
        raise AssertionError("it met nothing")

    def _turn(self, record: Any, transfer: Any) -> int:
        same = (each for each in record.beside.transfers if each[1:3] == transfer[1:3])
        return sum(each.position < transfer.position for each in same)

    def _chosen_by(self, number: int, position: int, plan: Any, accesses: Any, result: str, element: int) -> set[int]:
        """The makers of indices and addresses: of an index those elements that choose what is read or written."""
        found: set[int] = set()
        record, views = self.records[number], list(self.indices.get((number, position), ()))
        shapes = {name: access.layout.shape for name, access in zip(plan.operands, accesses, strict=True)}
        for operand, (name, access) in enumerate(zip(plan.operands, accesses, strict=True)):
            part = record.beside.part(position, operand)
            if part is None or part.bits is not None:
                continue
            axis = 0 if part.columns is None else 1
            view = next(each for each in views if each[0].layout.elements >= access.layout.shape[axis])
            views = [each for each in views if each is not view]
            wanted = np.zeros(shapes.get(result, (1,)), bool)
            wanted.reshape(-1)[element] = True
            mask = wanted if name == result else np.zeros(access.layout.shape, bool)
            if name != result:
                for source, lit in plan.elements.sources(result, wanted, shapes, {}).items():
                    if source.operand == name:
                        mask = mask | lit
            group = 16 if axis else view[0].layout.shape[0]
            for line in np.unique(np.nonzero(mask)[axis]).tolist():
                turns = int(np.prod(view[0].layout.shape[1:]))
                found |= set(view[1][line % group * turns + line // group].tolist())
        for _, makers in views:
            found |= set(makers.reshape(-1).tolist())
        return found

    def slice_of(self, number: int, access: Any, element: int) -> set[Any]:
        """Everything that an element of a view was made of at the end of the run: makers, and leaves."""
        holders, found = self._bytes(number, access)
        todo = [holders[byte] for byte in found.reshape(-1, found.shape[-1])[element].tolist()]
        seen = set(todo)
        while todo:
            for each in self.sources(todo.pop()) - seen:
                seen.add(each)
                todo.append(each)
        return {self.names[each] for each in seen}
