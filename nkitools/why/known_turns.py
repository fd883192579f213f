"""Ways back through turns of loops that are alike: what one instruction reads is found once for all that repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.issue.element_map_text import elements_from
from nkitools.issue.element_maps import STATES, Elements, From
from nkitools.record.dataflow.accesses import writes_of
from nkitools.record.dataflow.last_accesses import ADDS, READS
from nkitools.record.instruction_record import RecordedPlan
from nkitools.record.rows import Access, Row
from nkitools.why.meetings import Node
from nkitools.why.memory_units import Memories, Memory
from nkitools.why.visits import Read, Visit

if TYPE_CHECKING:
    from nkitools.record.dependences import Dependences

Results = dict[str, Array]
"""Elements by result, as masks."""

_NOT_ASKED: Results = {}


@dataclass(eq=False, slots=True)
class Step:
    """The elements of an operand that an instruction has read; their units, where who wrote them may be known."""

    operand: int
    name: str
    access: Access
    wanted: Array
    units: Array
    memory: Memory
    is_plain: bool


@dataclass(eq=False, slots=True)
class Form:
    """The instructions of one row: of a plan, at a site, with their operands at one place."""

    row: Row
    is_plain: bool
    steps: dict[tuple[tuple[str, int], ...], tuple[dict[str, Access], list[Step]]] = field(default_factory=dict)
    covered: dict[int, Results | None] = field(default_factory=dict)  # by step; None where it leaves units out


class KnownTurns:
    """The forms of the instructions of one record, and what is known of each."""

    def __init__(self, memories: Memories) -> None:
        self._memories, self._record = memories, memories.record
        beside = self._record.beside
        self._special = {position for position, _, _ in beside.parts(as_run=True)}
        self._special.update(memories.indices, memories.registers, (each.position for each in beside.transfers))
        self._numbers = self._record.row_numbers()
        self._forms: dict[int, Form] = {}
        self._masks: dict[tuple[tuple[int, ...], bytes], Array] = {}
        self._kept: set[int] = set()

    def form(self, position: int) -> Form | None:
        """Return the form of an instruction; None where facts beside its row count too."""
        if position in self._special:
            return None
        number = self._numbers[position]
        found = self._forms.get(number)
        if found is None:
            row = self._record.row(position)
            found = self._forms[number] = Form(row, _is_plain(elements_of(row.plan)))
        return found

    def one(self, mask: Array) -> Array:
        """Return the one mask that stands for all that equal it."""
        if id(mask) in self._kept:
            return mask
        found = self._masks.setdefault((mask.shape, mask.tobytes()), mask)
        self._kept.add(id(found))
        return found

    def step(self, row: Row, operand: int, wanted: Array) -> Step | None:
        """Return a step to elements of an operand; None for no elements."""
        access, part = row.access(operand), self._memories.part(row.position, row.plan.id, operand)
        if part is not None and part.bits is not None:
            wanted = wanted & part.lanes
        if not wanted.any():
            return None
        is_plain = not access.written or writes_of(row.plan) & (READS | ADDS) == READS
        units, memory = self._memories.units_of(access, wanted), self._memories.memory_of(access.storage)
        return Step(operand, row.plan.operands[operand], access, wanted, units, memory, is_plain)


class LastWriters:
    """The last writers of the elements that operands read, by the dependences of a run, which are kept as lists."""

    def __init__(self, dependences: Dependences, memories: list[Memories]) -> None:
        rows = dependences.by_operand
        self._ends, self._sources = rows.starts.tolist(), rows.sources.tolist()
        self._bases = dependences.bases
        before = np.cumsum([0, *(each.columns.positions.size for each in memories)]).tolist()
        self._firsts = [
            (each.columns.first_operands + first).tolist() for each, first in zip(memories, before, strict=False)
        ]

    def of(self, number: int, position: int, operand: int) -> list[int]:
        """Return the instructions that wrote elements of an operand last, as positions in its record, ascending."""
        at, base = self._firsts[number][position] + operand, self._bases[number]
        return [each - base for each in self._sources[self._ends[at] : self._ends[at + 1]] if each >= base]

    def last(self, number: int, position: int, operand: int) -> int:
        """Return the last one of them; -1 where there is none."""
        at = self._firsts[number][position] + operand
        end = self._ends[at + 1]
        return max(self._sources[end - 1] - self._bases[number], -1) if end > self._ends[at] else -1


class Way(Protocol):
    """A way back through a run, as its visits use it."""

    memories: list[Memories]
    visits: dict[Node, Visit]
    right: dict[tuple[int, int], list[int]]

    def sources(
        self,
        node: Node,
        row: Row,
        elements: Elements,
        result: str,
        wanted: Array,
        shapes: Mapping[str, tuple[int, ...]],
    ) -> Iterator[tuple[From, Array]]:
        """Yield what made the wanted elements of a result."""

    def follow(self, number: int, access: Access, units: Array, read: Read, operand: int | None) -> None:
        """Find the writers of units that were read, and go back from them."""

    def is_right(self, number: int, storage: int, writer: int, reader: int) -> bool:
        """Return whether a tensor held the right values between its writer and its reader."""

    def written(self, node: Node, row: Row, operand: int, access: Access, units: Array) -> tuple[Array, Array]:
        """Return the elements of an output that have some units, and which of the units these are."""

    def want(self, node: Node, result: str, mask: Array) -> None:
        """Let the way go through elements of a result."""


class RepeatedVisits:
    """Visits instructions as earlier ones like them, where nothing beside their rows counts."""

    def __init__(self, back: Way, last_writers: LastWriters) -> None:
        self._back, self._last_writers = back, last_writers
        self._turns = [KnownTurns(each) for each in back.memories]

    def visit(self, node: Node, made: Results) -> bool:
        """Visit an instruction as an earlier one like it; return whether that could be done."""
        number, position = node
        known, visit = self._turns[number], self._back.visits[node]
        form = known.form(position)
        if form is None or not form.is_plain or visit.reads:
            return False
        key = tuple([(result, id(known.one(mask))) for result, mask in made.items()])
        found = form.steps.get(key)
        if found is None:
            made = {result: known.one(mask) for result, mask in made.items()}
            found = form.steps[key] = self._steps(node, form, made)
        visit.results = found[0]
        for step in found[1]:
            read = Read(step.name, number, position, step.access, step.wanted, {})
            visit.reads[number, position, step.operand] = read
            if not self._follow_as_known(node, step, read):
                self._back.follow(number, step.access, step.units, read, step.operand)
        return True

    def _steps(self, node: Node, form: Form, made: Results) -> tuple[dict[str, Access], list[Step]]:
        """Return the results that have some elements, and the steps to the elements that these were made of."""
        row, known = form.row, self._turns[node[0]]
        names, accesses = row.plan.operands, row.accesses()
        shapes = {name: access.layout.shape for name, access in zip(names, accesses, strict=True)}
        shapes |= dict.fromkeys(row.plan.registers, ())
        results, wanted = dict[str, Access](), dict[int, Array]()
        for result, elements in made.items():
            if result in names:
                results[result] = accesses[names.index(result)]
            for source, mask in self._back.sources(node, row, elements_of(row.plan), result, elements, shapes):
                if source.operand in names:
                    at = names.index(source.operand)
                    wanted[at] = wanted[at] | mask if at in wanted else mask
        steps = [known.step(row, operand, mask) for operand, mask in wanted.items()]
        return results, [each for each in steps if each is not None]

    def _follow_as_known(self, node: Node, step: Step, read: Read) -> bool:
        """Go back to the one writer of all that was read; return whether there is one alone."""
        number = node[0]
        writer = self._last_writers.last(number, node[1], step.operand) if step.is_plain else -1
        form = self._turns[number].form(writer) if writer >= 0 else None
        if form is None:
            return False
        taken = form.covered.get(id(step), _NOT_ASKED)
        if taken is _NOT_ASKED:
            taken = form.covered[id(step)] = self._covered((number, writer), form, step)
        if taken is None:
            return False
        read.writers[writer] = step.units
        if not (self._back.right and self._back.is_right(number, step.access.storage, writer, node[1])):
            for result, mask in taken.items():
                self._back.want((number, writer), result, mask)
        return True

    def _covered(self, node: Node, form: Form, step: Step) -> Results | None:
        """Return what an instruction has written of the units of a step, by result; None where it is not all."""
        memories, taken = self._back.memories[node[0]], Results()
        left = np.ones(step.units.size, np.bool_)
        for at, each in enumerate(form.row.accesses()):
            if each.written and memories.memory_of(each.storage) == step.memory:
                mask, covered = self._back.written(node, form.row, at, each, step.units[left])
                left[left] = ~covered
                if covered.any():
                    taken[form.row.plan.operands[at]] = self._turns[node[0]].one(mask)
        return None if left.any() else taken


def elements_of(plan: RecordedPlan) -> Elements:
    """Return the element map of a plan, also of one out of a file. ValueError for a file without any."""
    found = getattr(plan, "elements", None)
    if found is None and not plan.element_map:
        raise ValueError("the saved run is of an older version, which kept no element maps: run the kernel again")
    return elements_from(plan.element_map) if found is None else found


def _is_plain(elements: Elements) -> bool:
    """Return whether an element map names the instruction's own operands, whatever their values are."""
    return all(
        source.operand not in STATES and source.rank is None and source.core is None and not rule.needs
        for result, rules in elements.made
        if result not in STATES
        for source, rule in rules
    ) and not any(result in STATES for result, _ in elements.made)
