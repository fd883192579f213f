"""A run as a trace in estimated time: the schedule of `Run.estimate`, instruction by instruction.

Each core is a process. Its engines are tracks, with a slice for the time that an instruction occupies its engine. A
transfer occupies the DMA engines as long as its descriptors and bytes need, and a queue until it has ended. Arrows lead
from the end of an instruction to one on another engine that waits for it. Counters have the bytes of SBUF and PSUM, a
partition of tensors between their first and their last use, and the number of transfers under way.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.record.columns import Columns
from nkitools.record.instruction_reader import instructions_between
from nkitools.report.perfetto_packets import ENGINE_TRACKS, Packets, describe
from nkitools.timing.durations import DMA, ENGINES, LEFT_OUT
from nkitools.timing.estimate import estimated
from nkitools.timing.schedule import NO_CAUSE

if TYPE_CHECKING:
    from nkitools.record.record import Record
    from nkitools.record.run import Run

LABEL = "estimated time"
_MEMORIES = ("SBUF", "PSUM")
_TRANSFERS = "DMA engines"
_ORDER = ("device prints", *(name for name in ENGINE_TRACKS.values() if name != ENGINE_TRACKS["dma"]), _TRANSFERS)


def time_trace(run: Run) -> bytes:
    """Return the trace of a run that has instructions."""
    return _TimeTrace(run).written()


class _TimeTrace:
    """The packets of a run in time."""

    def __init__(self, run: Run) -> None:
        self.run = run
        found, timeline = estimated(run, advises=False)
        self.cores, self.kinds = timeline.core_numbers, timeline.kinds
        self.causes, self.by_engine = timeline.schedule.causes, timeline.schedule.waits_for_engine
        self.starts, self.begins = timeline.starts_ns, timeline.begins_ns
        self.freed, self.ends = timeline.freed_ns, timeline.ends_ns
        self.packets = Packets()
        self.processes: dict[int, int] = {}
        self.tracks: dict[tuple[int, str], int] = {}
        self.queues: dict[int, list[int]] = {}  # of each core, when each of them is free
        self.description = found.how_good
        self.flows = self._flows()
        self.waiting = {each for waiting in self.flows.values() for each in waiting}

    def written(self) -> bytes:
        """Return them as bytes."""
        base = 0
        for record in self.run.all_records:
            whose = slice(base, base + record.count)
            first = int(self.cores[whose].min()) if record.count else 0
            for core in np.unique(self.cores[whose]).tolist():
                rank = "" if record.rank is None else f"rank {record.rank}, "
                name = f"{self.run.kernel} on {self.run.chip}: {rank}core {core - first} ({LABEL})"
                self.processes[core] = self.packets.process(name, core + 1, self.description)
            self._slices(record, base)
            self._memories(record, base)
            self._prints(record, base)
            base += record.count
        self._depths()
        return self.packets.written()

    def _flows(self) -> dict[int, list[int]]:
        """Return for each instruction those on other engines that wait for its end."""
        found: dict[int, list[int]] = {}
        waits = (self.causes != NO_CAUSE) & ~self.by_engine
        for position in np.flatnonzero(waits).tolist():
            cause = int(self.causes[position])
            if (self.cores[cause], self.kinds[cause]) != (self.cores[position], self.kinds[position]):
                found.setdefault(cause, []).append(position)
        return found

    def _slices(self, record: Record, base: int) -> None:
        """Add the slices of one record, in the order of their start."""
        order = np.argsort(self.starts[base : base + record.count], kind="stable").tolist()
        instructions = list(instructions_between(record, 0, record.count))
        for place in order:
            position = base + place
            core, kind = int(self.cores[position]), int(self.kinds[position])
            if kind == LEFT_OUT:
                continue
            one = instructions[place]
            if kind == DMA:
                self._slice(
                    int(self.begins[position]), self._track(core, _TRANSFERS), one.name, int(self.freed[position])
                )
                track, end = self._track(core, self._queue(position)), int(self.ends[position])
            else:
                track, end = self._track(core, ENGINE_TRACKS[ENGINES[kind]]), int(self.freed[position])
            event = self._slice(int(self.starts[position]), track, one.name, end)
            describe(event, one, place)
            if position in self.flows:
                event.flow_ids.extend(each + 1 for each in self.flows[position])
            if position in self.waiting:
                event.terminating_flow_ids.append(position + 1)

    def _queue(self, position: int) -> str:
        """Return the first queue of a transfer's core that is free when the transfer starts."""
        queues = self.queues.setdefault(int(self.cores[position]), [])
        start = int(self.starts[position])
        number = next((number for number, free in enumerate(queues) if free <= start), len(queues))
        queues[number : number + 1] = [int(self.ends[position])]
        return f"DMA queue {number}"

    def _slice(self, start: int, track: int, name: str, end: int) -> Any:
        """Add a slice, and return its first event."""
        event = self.packets.event(self.packets.begin, start, track, name)
        self.packets.event(self.packets.end, end, track)
        return event

    def _track(self, core: int, name: str) -> int:
        """Return the track of a core, made at its first use."""
        found = self.tracks.get((core, name))
        if found is None:
            rank = _ORDER.index(name) if name in _ORDER else len(_ORDER) + len(self.queues[core])
            found = self.tracks[core, name] = self.packets.track(name, self.processes[core], rank)
        return found

    def _memories(self, record: Record, base: int) -> None:
        """Add a counter for each memory of each core: the bytes of a partition that tensors have."""
        columns = Columns(record)
        changes: dict[tuple[int, str], list[tuple[int, int]]] = {}
        order = np.argsort(columns.storages, kind="stable")
        storages, positions = columns.storages[order], columns.positions[order] + base
        firsts = np.flatnonzero(np.diff(storages, prepend=-1))
        for storage, uses in zip(storages[firsts].tolist(), np.split(positions, firsts[1:]), strict=True):
            known = record.storages.get(storage)
            if known is not None and known.memory in _MEMORIES:
                place = changes.setdefault((int(self.cores[uses[0]]), known.memory), [])
                place.append((int(self.starts[uses].min()), known.partition_bytes))
                place.append((int(self.ends[uses].max()), -known.partition_bytes))
        for (core, memory), steps in sorted(changes.items()):
            self._counter(core, f"{memory} of a partition", "bytes", steps)

    def _depths(self) -> None:
        """Add a counter for each core: the transfers that are under way."""
        transfers = self.kinds == DMA
        for core in np.unique(self.cores[transfers]).tolist():
            mine = np.flatnonzero(transfers & (self.cores == core))
            steps = [(at, 1) for at in self.starts[mine].tolist()] + [(at, -1) for at in self.ends[mine].tolist()]
            self._counter(core, "transfers under way", "transfers", steps)

    def _counter(self, core: int, name: str, unit: str, steps: list[tuple[int, int]]) -> None:
        """Add a counter from its changes, as time and difference."""
        track = self.packets.counter_track(name, self.processes[core], unit)
        value = 0
        for at, of_time in groupby(sorted(steps), key=itemgetter(0)):
            value += sum(change for _, change in of_time)
            self.packets.event(self.packets.counter, at, track).counter_value = value

    def _prints(self, record: Record, base: int) -> None:
        """Add the device prints of one record, each at the start of the following instruction."""
        for printed in self.run.prints:
            if printed.rank != record.rank or not record.count:
                continue
            position = base + min(printed.issued, record.count - 1)
            track = self._track(int(self.cores[position]), "device prints")
            self.packets.add_print(printed, int(self.starts[position]), track)
