"""The walk back from elements of a run to all that they were made of, instruction by instruction.

The walk is exact for each element: it follows the element maps that instructions state, and the last writer of each
element. An index on the device that chooses elements needs its values for that; if they are unknown, the walk takes all
elements that the index may have chosen.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.issue.element_maps import STATES, Elements, From
from nkitools.issue.indirection import group_of
from nkitools.record.dataflow.accesses import writes_of
from nkitools.record.dataflow.last_accesses import ADDS, GIVEN, READS, UNWRITTEN
from nkitools.record.last_writer import bytes_of
from nkitools.record.rows import Access, Row
from nkitools.record.run import Run
from nkitools.why.indirect_views import IndirectView
from nkitools.why.last_writers import LastWriters, elements_of
from nkitools.why.meetings import Meetings, Node
from nkitools.why.memory_units import Memories, Memory
from nkitools.why.visits import INDEX, Read, Visit


class KnownValues(Protocol):
    """A source of the values that elements had during a run."""

    def read(self, number: int, memory: Memory, parts: Mapping[int, Array]) -> tuple[Array, Array] | None:
        """Return sorted units with their bytes; None if one is unknown, or if none was ever written.

        ``parts``: the units by the position of their last writer, `GIVEN` for arguments and constants.
        """


class Backward:
    """A walk back through a run, from some elements to the instructions and data that made them."""

    def __init__(self, run: Run, values: KnownValues | None = None) -> None:
        self.records = run.all_records
        self.values = values
        self.memories = [Memories(record) for record in self.records]
        self.asked: list[Read] = []
        self.missed: list[Read] = []  # operands whose unknown values choose elements
        self.visits: dict[Node, Visit] = {}
        self.is_exact = True  # until the walk meets an index whose values are unknown
        # By record and storage: the instructions after which all of the tensor is right; the walk ends there.
        self.right: dict[tuple[int, int], list[int]] = {}
        self._dependences = run.dependences
        self._meetings = Meetings(self.records)
        self._pending: dict[Node, dict[str, Array]] = {}
        self._todo: list[tuple[int, int]] = []
        self._places: dict[tuple[int, int, int], Array | None] = {}
        self._last_writers = LastWriters(self._dependences, self.memories)

    def reads(self) -> Iterator[Read]:
        """Yield the elements that were asked for, then what each visited instruction read."""
        yield from self.asked
        for visit in self.visits.values():
            yield from visit.reads.values()

    def start(
        self, number: int, access: Access, wanted: Array, most: int | None = None, before: int | None = None
    ) -> Read:
        """Walk back from the ``wanted`` elements of a view, and return them as the read that begins the walk.

        The elements are those at the end of the run, or right before the instruction at position ``before``. ``most``:
        the walk stops when it has found so many instructions.
        """
        position = self.records[number].count if before is None else before
        asked = Read("", number, position, access, wanted)
        self.asked.append(asked)
        units = self.memories[number].units_of(access, wanted)
        with _without_collections():
            self.follow(number, access, units, asked, None)
            self._go_back(most)
        return asked

    def _go_back(self, most: int | None) -> None:
        while self._todo and (most is None or len(self.visits) < most):
            at, number = heapq.heappop(self._todo)
            node = number, -at
            if node in self._pending:
                self._visit(node, self._pending.pop(node))

    # --- one instruction --------------------------------------------------------------------------------------------

    def _visit(self, node: Node, made: dict[str, Array]) -> None:
        number, position = node
        row, memories = self.records[number].row(position), self.memories[number]
        elements, names = elements_of(row.plan), row.plan.operands
        visit, accesses = self.visits[node], row.accesses()
        shapes = {name: access.layout.shape for name, access in zip(names, accesses, strict=True)}
        shapes |= dict.fromkeys(row.plan.registers, ())
        for result, wanted in made.items():
            if result in shapes and result in names:
                visit.results[result] = accesses[names.index(result)]
                self._read_index(node, names.index(result), wanted)
            for source, mask in self.sources(node, row, elements, result, wanted, shapes):
                if source.operand in STATES:
                    self._read_state(node, source.operand, mask)
                elif source.operand in names:
                    self._read(node, source, mask)
        for earlier in memories.registers.get(position, ()):
            self._read_register((number, earlier), visit)
        bound = {id(each.index) for each in self._indirect_views(node).values()}
        for at, access in enumerate(memories.indices.get(position, ())):
            if id(access) not in bound:
                self._read_view(node, node, -1 - at, INDEX, access, np.ones(access.layout.shape, np.bool_))

    def sources(
        self,
        node: Node,
        row: Row,
        elements: Elements,
        result: str,
        wanted: Array,
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Iterator[tuple[From, Array]]:
        """Yield each operand that made the ``wanted`` elements of a result, with a mask of its elements.

        If the instruction has no element map: all elements of all operands.
        """
        stated = dict(elements.made)
        if result not in stated:
            if not stated:
                for name, access in zip(row.plan.operands, row.accesses(), strict=True):
                    yield From(name), np.ones(access.layout.shape, np.bool_)
            return
        values = {}
        for name in elements.needs(result):
            if name in shapes:
                found = self._operand_values(node, name)
                if found is not None:
                    values[name] = found
                else:
                    self.is_exact = False
        yield from elements.sources(result, wanted, shapes, values).items()

    # --- its operands -----------------------------------------------------------------------------------------------

    def _read(self, node: Node, source: From, mask: Array) -> None:
        """Walk back from elements of an operand, which may belong to another rank or core."""
        owner = self._meetings.origin(node, source)
        if owner is None or not mask.any():
            return
        row = self.records[owner[0]].row(owner[1])
        names = row.plan.operands
        if source.operand not in names:
            return
        operand = names.index(source.operand)
        access, part = row.access(operand), self.memories[owner[0]].part(owner[1], row.plan.id, operand)
        if part is not None and part.bits is not None:
            mask = mask & part.lanes
        view = self._indirect_views(owner).get(operand)
        if view is not None:
            self._read_index(owner, operand, mask)
            access, mask = view.all_of_it, view.sources(mask)
        self._read_view(node, owner, operand, source.operand, access, mask)

    def _read_view(self, node: Node, owner: Node, operand: int, name: str, access: Access, mask: Array) -> None:
        if not mask.any():
            return
        visit, (number, position) = self.visits[node], owner
        read = visit.reads.get((*owner, operand))
        if read is None:
            read = visit.reads[*owner, operand] = Read(name, number, position, access, mask)
        else:
            mask = mask & ~read.wanted
            read.wanted = read.wanted | mask
            if not mask.any():
                return
        units = self.memories[number].units_of(access, mask)
        self.follow(number, access, units, read, operand if operand >= 0 else None)

    def _read_register(self, earlier: Node, visit: Visit) -> None:
        number, position = earlier
        plan = self.records[number].plan_at(position)
        made = dict(elements_of(plan).made)
        results = [name for name in plan.registers if name in made]
        for result in results or ([""] if not made else []):
            visit.registers.add(position)
            self.want(earlier, result, np.ones((), np.bool_))

    def _read_state(self, node: Node, state: str, wanted: Array) -> None:
        """Walk back from elements of a state that an engine keeps between instructions, one for each partition."""
        number, position = node
        left = wanted.reshape(-1).copy()
        for earlier in sorted(self.memories[number].registers.get(position, ()), reverse=True):
            row = self.records[number].row(earlier)
            if state not in dict(elements_of(row.plan).made):
                continue
            count = max(access.layout.shape[0] for access in row.accesses())
            mine = np.zeros(count, np.bool_)
            mine[: left.size] = left[:count]
            if mine.any():
                self.visits[node].registers.add(earlier)
                self.want((number, earlier), state, mine)
                left[:count] = False

    # --- the last writers -------------------------------------------------------------------------------------------

    def follow(self, number: int, access: Access, units: Array, read: Read, operand: int | None) -> None:
        """Add the last writers of ``units`` to a read, and walk back from the elements that they wrote.

        It does not go on from a writer if the whole tensor was right at some time between that and the read.
        """
        found = self._writers(number, access, units, read.position, operand)
        for position, mine, results in found:
            known = read.writers.get(position)
            read.writers[position] = mine if known is None else np.union1d(known, mine)
            if position >= 0 and self.is_right(number, access.storage, position, read.position):
                continue
            for result, mask in results.items():
                self.want((number, position), result, mask)

    def is_right(self, number: int, storage: int, writer: int, reader: int) -> bool:
        """Return whether a tensor held the right values at some time after its writer and before its reader."""
        times = self.right.get((number, storage), ())
        return any(writer <= time < reader for time in times)

    def _writers(
        self, number: int, access: Access, units: Array, before: int, operand: int | None
    ) -> list[tuple[int, Array, dict[str, Array]]]:
        """Return the last writers of ``units`` before an instruction.

        For each: its position, `GIVEN` or `UNWRITTEN` for none; the units that it wrote; masks of their elements by
        result.
        """
        memories = self.memories[number]
        memory, adds_to = memories.memory_of(access.storage), False
        if operand is not None and access.written:
            kind = writes_of(self.records[number].plan_at(before))
            adds_to = bool(kind & ADDS)
            operand = operand if kind & (READS | ADDS) else None
        found, left = [], units
        for position in self._candidates(number, memory, units, before, operand, adds_to=adds_to):
            if not left.size:
                break
            row = self.records[number].row(position)
            mine, taken = np.zeros(left.size, np.bool_), dict[str, Array]()
            for at, each in enumerate(row.accesses()):
                if not each.written or memories.memory_of(each.storage) != memory:
                    continue
                mask, covered = self.written((number, position), row, at, each, left)
                mine |= covered
                if covered.any() and not (adds_to and each.storage != access.storage):
                    taken[row.plan.operands[at]] = mask
            if taken:
                found.append((position, left[mine], taken))
            left = left[~mine]
        if left.size and not (adds_to and not self._is_given(number, access.storage)):
            found.append((GIVEN if self._is_given(number, access.storage) else UNWRITTEN, left, {}))
        return found

    def _candidates(
        self, number: int, memory: Memory, units: Array, before: int, operand: int | None, *, adds_to: bool
    ) -> Iterable[int]:
        """Return the positions of the instructions that may be the last writers of ``units``, the latest first."""
        memories = self.memories[number]
        if operand is None or (adds_to and memory[0] == "place"):
            return memories.writers_of(memory, before, units)
        return reversed(self._last_writers.of(number, before, operand))

    def written(self, node: Node, row: Row, operand: int, access: Access, units: Array) -> tuple[Array, Array]:
        """Return two masks: the elements of a result that contain some of ``units``, and the units contained."""
        memories = self.memories[node[0]]
        view = self._indirect_views(node).get(operand)
        numbers = memories.element_of(access if view is None else view.all_of_it, units)
        if view is None:
            part = memories.part(node[1], row.plan.id, operand)
            if part is not None and part.lanes is not None:
                numbers = np.where(part.lanes.reshape(-1)[numbers], numbers, -1)
            marked = np.zeros(access.layout.shape, np.bool_)
            marked.reshape(-1)[numbers[numbers >= 0]] = True
            return marked, numbers >= 0
        shape = view.part.layout.shape
        chosen = np.zeros(shape[view.axis], np.bool_)
        chosen[view.chosen] = True
        places = np.unravel_index(np.maximum(numbers, 0), shape)[view.axis]
        numbers = np.where(chosen[places], numbers, -1)
        marked = np.zeros(shape, np.bool_)
        marked.reshape(-1)[numbers[numbers >= 0]] = True
        result = row.plan.operands[operand]
        rules = dict(elements_of(row.plan).made).get(result, ())
        adds = any(source.operand == result for source, _ in rules)
        return view.results(marked, adds=adds), numbers >= 0

    def _is_given(self, number: int, storage: int) -> bool:
        known = self.records[number].storages.get(storage)
        return known is None or known.is_given

    def want(self, node: Node, result: str, mask: Array) -> None:
        """Add elements of a result to the walk, except those that are in it already."""
        visit = self.visits.get(node)
        if visit is None:
            self.visits[node], self._pending[node] = Visit({result: mask}), {result: mask}
            heapq.heappush(self._todo, (-node[1], node[0]))
            return
        known = visit.made.get(result)
        if known is not None:
            mask = mask & ~known
            if not mask.any():
                return
        visit.made[result] = mask if known is None else known | mask
        pending = self._pending.setdefault(node, {})
        if not pending:
            heapq.heappush(self._todo, (-node[1], node[0]))
        pending[result] = pending[result] | mask if result in pending else mask

    # --- indices ----------------------------------------------------------------------------------------------------

    def view_of(self, node: Node, result: str) -> IndirectView | None:
        """Return the view of a result whose elements an index chose; None if no index did."""
        row = self.records[node[0]].row(node[1])
        return self._indirect_views(node).get(row.plan.operands.index(result))

    def _indirect_views(self, node: Node) -> dict[int, IndirectView]:
        """Return the operands of an instruction whose elements an index chose, by operand number."""
        number, position = node
        indices = self.memories[number].indices.get(position)
        if not indices:
            return {}
        row, left, found = self.records[number].row(position), list(indices), dict[int, IndirectView]()
        for operand, access in enumerate(row.accesses()):
            part = self.memories[number].part(position, row.plan.id, operand)
            if part is None or part.bits is not None:
                continue
            axis = 0 if part.columns is None else 1
            size = access.layout.shape[axis]
            index = next((each for each in left if each.layout.elements >= size), None)
            left = [each for each in left if each is not index]
            group = group_of(row.plan.engine) if axis or index is None else index.layout.shape[0]
            found[operand] = IndirectView(access, part, index, group)
        return {at: self._with_places(node, at, view) for at, view in found.items()}

    def _with_places(self, node: Node, operand: int, view: IndirectView) -> IndirectView:
        key = (*node, operand)
        if key not in self._places:
            self._places[key] = None  # until its values are found
            values = None if view.index is None else self._values_of(node, view.index)
            self._places[key] = None if values is None else view.index_places(values)
        places = self._places[key]
        self.is_exact = self.is_exact and places is not None
        return IndirectView(view.view, view.part, view.index, view.group, places)

    def _read_index(self, node: Node, operand: int, mask: Array) -> None:
        """Walk back from the elements of an index that chose the elements ``mask`` of an operand."""
        view = self._indirect_views(node).get(operand)
        if view is not None and view.index is not None and mask.any() and node in self.visits:
            index = self.memories[node[0]].indices[node[1]]
            at = next(at for at, each in enumerate(index) if each is view.index)
            self._read_view(node, node, -1 - at, INDEX, view.index, view.index_elements(mask))

    def _operand_values(self, node: Node, name: str) -> Array | None:
        row = self.records[node[0]].row(node[1])
        return self._values_of(node, row.access(row.plan.operands.index(name)))

    def _values_of(self, node: Node, access: Access) -> Array | None:
        """Return the elements of a view as they were when an instruction was issued; None if they are unknown."""
        number, position = node
        memories = self.memories[number]
        read = Read(INDEX, number, position, access, np.ones(access.layout.shape, np.bool_))
        for writer, units, _ in self._writers(number, access, memories.units_of(access), position, None):
            known = read.writers.get(writer)
            read.writers[writer] = units if known is None else np.union1d(known, units)
        if self.values is None:
            self.missed.append(read)
            return None
        found = self.values.read(number, memories.memory_of(access.storage), read.writers)
        return None if found is None else array_of(memories, access, found)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the garbage collector: it would search the many objects of a long walk again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def array_of(memories: Memories, access: Access, known: tuple[Array, Array]) -> Array:
    """Return the elements of a view from the bytes of its units; zero bytes for unknown units.

    ``known``: sorted units and their bytes.
    """
    layout = access.layout
    every = memories.every_unit(access, bytes_of(layout).reshape(-1))
    return elements_from_units(known, every, layout.dtype.dtype).reshape(layout.shape)


def elements_from_units(known: tuple[Array, Array], every: Array, dtype: np.dtype[Any]) -> Array:
    """Return elements of ``dtype`` whose units are ``every``, in this order; zero bytes for unknown units.

    ``known``: sorted units and their bytes.
    """
    units, raw = known
    places = np.minimum(np.searchsorted(units, every), units.size - 1)
    same = units[places] == every
    found = raw[places] if same.all() else np.where(same[:, None], raw[places], np.uint8(0))
    return np.frombuffer(found.tobytes(), dtype)
