"""Backward slices of runs, with the values of a second run or of a watch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.dataflow.last_accesses import GIVEN, UNWRITTEN
from nkitools.record.element_slice import Slice, SliceDetails, SlicePart, SliceStep
from nkitools.record.instruction_reader import instruction_at
from nkitools.record.instruction_record import InstructionRecord
from nkitools.record.record import StorageRecord
from nkitools.record.run import Run
from nkitools.why.asked_elements import Asked, asked_of
from nkitools.why.backward import Backward, array_of
from nkitools.why.element_indices import form_of, indices_of
from nkitools.why.findings_of_values import marks_of, terms_of
from nkitools.why.meetings import Node
from nkitools.why.memory_units import starts_of
from nkitools.why.narrative import lines_of
from nkitools.why.values import Capture, Values, wanted_of, watched_values
from nkitools.why.visits import Read, Visit

NOT_WATCHED = "nothing was watched: save the run of `nkitools run --watch NAME`, or call run.why where it has just run"


def slice_of(run: Run, output: Any, index: Any) -> Slice:
    """Return everything that elements of a run were made of."""
    asked = asked_of(run, output, index)
    back = Backward(run)
    back.start(*asked)
    found: list[_Way] = [] if back.is_exact else [_way_of(run, back, asked)]
    bases, visits = run.dependences.bases, (found[0].back if found else back).visits
    positions = np.unique(np.array([bases[number] + position for number, position in visits], np.int64))

    def details() -> SliceDetails:
        return _Told(run, found[0] if found else _way_of(run, back, asked)).details()

    return Slice(positions, details, lines_of)


@dataclass(frozen=True)
class _Way:
    """A way back, the values on it, and why there are none ('' where they are)."""

    back: Backward
    values: Values | None
    reason: str


def way_back(run: Run, asked: Asked) -> _Way:
    """Return the way back from what was asked for, with the values on it."""
    back = Backward(run)
    back.start(*asked)
    return _way_of(run, back, asked)


def nearest_steps(run: Run, asked: Asked, most: int) -> list[InstructionRecord]:
    """Return the last instructions on the way back from what was asked for, the last one first; at most so many."""
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
    """Return the values on the way, or why there are none."""
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


class _Told:
    """A way back as an author sees it: tensors, indices, values."""

    def __init__(self, run: Run, way: _Way) -> None:
        self._back, self._values, self._reason = way.back, way.values, way.reason
        self._bases = run.dependences.bases

    def details(self) -> SliceDetails:
        """Return the contents of the slice."""
        back = self._back
        steps = [self._step(node, visit) for node, visit in sorted(back.visits.items(), key=_last_first)]
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

    def _step(self, node: Node, visit: Visit) -> SliceStep:
        number, position = node
        operands = [self._part(read) for read in visit.reads.values() if read.writers]
        results = [
            self._part(_made(node, name, visit, self._back))
            for name in visit.made
            if name in visit.results and visit.made[name].any()
        ]
        instruction = instruction_at(self._back.records[number], position)
        found = SliceStep(self._bases[number] + position, instruction, tuple(results), tuple(operands))
        return SliceStep(found.position, instruction, found.results, found.operands, marks_of(found), terms_of(found))

    def _ends(self, kind: str) -> Iterator[SlicePart]:
        """Yield the elements where the way ends, storage by storage."""
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
        """Return the elements of a storage that have some units."""
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
        record, access = self._back.records[read.number], read.access
        known = record.storages.get(access.storage)
        shape, item = form_of(known, access)
        starts = access.byte_offset + starts_of(access.layout, read.wanted)
        base = self._bases[read.number]
        return SlicePart(
            read.operand,
            record.name_of(access.storage),
            known.memory if known else "",
            access.layout.dtype.name,
            shape,
            record.rank,
            indices_of(known, shape, item, starts),
            self._values_of(read),
            tuple(each if each < 0 else base + each for each in sorted(read.writers)),
        )

    def _values_of(self, read: Read) -> Array | None:
        if self._values is None:
            return None
        memories = self._back.memories[read.number]
        known = self._values.read(read.number, memories.memory_of(read.access.storage), read.writers)
        if known is None or UNWRITTEN in read.writers:
            return None
        return array_of(memories, read.access, known, read.wanted)


def _last_first(item: tuple[Node, Visit]) -> tuple[int, int]:
    return -item[0][1], item[0][0]


def _made(node: Node, name: str, visit: Visit, back: Backward) -> Read:
    """Return what an instruction has made, in the form in which later instructions read it."""
    number, position = node
    access, mask = visit.results[name], visit.made[name]
    view = back.view_of(node, name)
    if view is not None:
        access, mask = view.all_of_it, view.sources(mask)
    units = back.memories[number].units_of(access, mask)
    return Read(name, number, position, access, mask, {position: units})


def _is_argument(known: StorageRecord | None) -> bool:
    return known is None or known.site < 0
