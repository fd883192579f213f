"""Backward slices of runs, with the values of a second run or of a watch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.last_accesses import GIVEN, UNWRITTEN
from nkitools.record.element_slice import Slice, SliceDetails, SlicePart, SliceStep
from nkitools.record.instruction_reader import instruction_at, instructions_at
from nkitools.record.instruction_record import InstructionRecord
from nkitools.record.record import StorageRecord
from nkitools.record.run import Run
from nkitools.why.asked_elements import Asked, asked_of
from nkitools.why.backward import Backward, elements_from_units
from nkitools.why.element_indices import form_of, indices_of
from nkitools.why.findings_of_values import marks_of, terms_of
from nkitools.why.meetings import Node
from nkitools.why.memory_units import starts_of
from nkitools.why.narrative import lines_of
from nkitools.why.values import Capture, Values, wanted_of, watched_values
from nkitools.why.visits import Read, Visit

NOT_WATCHED = "nothing was watched: save the run of `nkitools run --watch NAME`, or call run.why where it has just run"


def slice_of(run: Run, output: Any, index: Any) -> Slice:
    """Return the backward slice of elements of an output: all that they were made of."""
    asked = asked_of(run, output, index)
    back = Backward(run)
    back.start(*asked)
    found: list[_Way] = [] if back.is_exact else [_way_of(run, back, asked)]
    bases, visits = run.dependences.bases, (found[0].back if found else back).visits
    positions = np.unique(np.array([bases[number] + position for number, position in visits], np.int64))

    def details() -> SliceDetails:
        return _AuthorsView(run, found[0] if found else _way_of(run, back, asked)).details()

    return Slice(positions, details, lines_of)


@dataclass(frozen=True)
class _Way:
    """A walk back, with the values on it. ``reason``: why there are no values; '' if there are."""

    back: Backward
    values: Values | None
    reason: str


def way_back(run: Run, asked: Asked) -> _Way:
    """Walk back from the asked elements, and find the values on the way."""
    back = Backward(run)
    back.start(*asked)
    return _way_of(run, back, asked)


def nearest_steps(run: Run, asked: Asked, most: int) -> list[InstructionRecord]:
    """Return the latest instructions on the walk back from the asked elements, latest first, ``most`` at most."""
    back = Backward(run)
    back.start(*asked, most=most)
    nodes = sorted(back.visits, key=lambda node: (-node[1], node[0]))[:most]
    return [instruction_at(back.records[number], position) for number, position in nodes]


def _way_of(run: Run, back: Backward, asked: Asked) -> _Way:
    values, reason = _values_for(run, back)
    if values is not None and not back.is_exact:
        again = Backward(run, values)
        again.start(*asked)
        if again.is_exact:
            back = again
    return _Way(back, values, reason)


def _values_for(run: Run, back: Backward) -> tuple[Values | None, str]:
    """Return the values on a walk back; or None, and the reason why there are none."""
    reason = NOT_WATCHED
    if run.again is not None:
        capture = Capture(back, wanted_of(back))
        second = run.again(capture, run)
        if not isinstance(second, str):
            return capture.values, ""
        reason = second
    if any(record.writes or record.inputs for record in back.records):
        return watched_values(run, back.memories), ""
    return None, reason


class _AuthorsView:
    """A walk back in the terms of the kernel's author: tensors, indices, values."""

    def __init__(self, run: Run, way: _Way) -> None:
        self._back, self._values, self._reason = way.back, way.values, way.reason
        self._bases = run.dependences.bases
        # By view and mask, as `_made` and `_part` look at the same one.
        self._views: dict[tuple[int, int, int, int, int], _View] = {}

    def details(self) -> SliceDetails:
        back = self._back
        instructions = self._instructions()
        nodes = sorted(back.visits, key=_last_first)
        steps = [self._step(node, back.visits[node], instructions[node]) for node in nodes]
        ends = {kind: list(self._ends(kind)) for kind in ("argument", "constant", "unwritten")}
        return SliceDetails(
            self._part(back.asked[0]),
            tuple(steps),
            tuple(ends["argument"]),
            tuple(ends["constant"]),
            tuple(ends["unwritten"]),
            self._reason,
            back.is_exact,
        )

    def _instructions(self) -> dict[Node, InstructionRecord]:
        found = dict[Node, InstructionRecord]()
        for number, record in enumerate(self._back.records):
            positions = sorted(position for each, position in self._back.visits if each == number)
            nodes = [(number, position) for position in positions]
            found.update(zip(nodes, instructions_at(record, positions), strict=True))
        return found

    def _step(self, node: Node, visit: Visit, instruction: InstructionRecord) -> SliceStep:
        number, position = node
        operands = [self._part(read) for read in visit.reads.values() if read.writers]
        results = [
            self._part(self._made(node, name, visit))
            for name in visit.made
            if name in visit.results and visit.made[name].any()
        ]
        found = SliceStep(self._bases[number] + position, instruction, tuple(results), tuple(operands))
        terms = terms_of(found)
        return replace(found, marks=marks_of(found, terms), terms=terms)

    def _ends(self, kind: str) -> Iterator[SlicePart]:
        """Yield the elements at which the walk ends, one part a storage. ``kind``: argument, constant or unwritten."""
        found: dict[tuple[int, int], list[tuple[Read, Array]]] = {}
        for read in self._back.reads():
            units = read.writers.get(UNWRITTEN if kind == "unwritten" else GIVEN)
            if units is None:
                continue
            known = self._back.records[read.number].storages.get(read.access.storage)
            if kind != "unwritten" and (kind == "argument") != _is_argument(known):
                continue
            found.setdefault((read.number, read.access.storage), []).append((read, units))
        for reads in found.values():
            read, units = reads[0][0], np.unique(np.concatenate([each for _, each in reads]))
            yield self._whole(read, units)

    def _whole(self, read: Read, units: Array) -> SlicePart:
        """Return the elements of a tensor that contain ``units``, without values."""
        memories = self._back.memories[read.number]
        record = memories.record
        known = record.storages.get(read.access.storage)
        unit = memories.unit(memories.memory_of(read.access.storage))
        first = memories.first_byte(read.access._replace(byte_offset=0))
        shape, item = form_of(known, read.access)
        indices = np.unique(indices_of(known, shape, item, units * unit - first), axis=0)
        name, memory = record.name_of(read.access.storage), known.memory if known else ""
        return SlicePart("", name, memory, known.dtype if known else "", shape, record.rank, indices, None)

    def _part(self, read: Read) -> SlicePart:
        record, base, view = self._back.records[read.number], self._bases[read.number], self._view(read)
        return SlicePart(
            read.operand,
            record.name_of(read.access.storage),
            view.memory,
            read.access.layout.dtype.name,
            view.shape,
            record.rank,
            view.indices,
            self._values_of(read, view),
            tuple([each if each < 0 else base + each for each in sorted(read.writers)]),
        )

    def _made(self, node: Node, name: str, visit: Visit) -> Read:
        """Return the elements that an instruction made of a result, in the form of a read."""
        number, position = node
        access, mask = visit.results[name], visit.made[name]
        indirect = self._back.view_of(node, name)
        if indirect is not None:
            access, mask = indirect.all_of_it, indirect.sources(mask)
        read = Read(name, number, position, access, mask)
        read.writers[position] = self._view(read).units
        return read

    def _view(self, read: Read) -> _View:
        """Return the elements of a read, with their indices and units."""
        access = read.access
        key = read.number, access.storage, access.layout.id, access.byte_offset, id(read.wanted)
        found = self._views.get(key)
        if found is None:
            memories = self._back.memories[read.number]
            known = memories.record.storages.get(access.storage)
            shape, item = form_of(known, access)
            starts = starts_of(access.layout, read.wanted)
            indices = indices_of(known, shape, item, access.byte_offset + starts)
            units = memories.every_unit(access, starts)
            memory = known.memory if known else ""
            found = self._views[key] = _View(read.wanted, memory, shape, indices, units, np.unique(units))
        return found

    def _values_of(self, read: Read, view: _View) -> Array | None:
        if self._values is None:
            return None
        memories = self._back.memories[read.number]
        known = self._values.read(read.number, memories.memory_of(read.access.storage), read.writers)
        if known is None or UNWRITTEN in read.writers:
            return None
        return elements_from_units(known, view.every_unit, read.access.layout.dtype.dtype)


@dataclass(eq=False, slots=True)
class _View:
    """Some elements of a view.

    ``wanted``: their mask, kept alive because its id stands for it. ``indices``: of the elements, in the tensor.
    ``every_unit``: the units of each element in turn. ``units``: these sorted, each once.
    """

    wanted: Array
    memory: str
    shape: tuple[int, ...]
    indices: Array
    every_unit: Array
    units: Array


def _last_first(node: Node) -> tuple[int, int]:
    return -node[1], node[0]


def _is_argument(known: StorageRecord | None) -> bool:
    return known is None or known.site < 0
