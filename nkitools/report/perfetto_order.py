"""A run as a trace that shows order, not time.

An instruction takes one step of a microsecond on the track of its engine, in the order of simulation, so that lengths
and gaps say nothing about a chip. Tracks are nested: the run, its ranks (each counts its own steps), its programs, and
in each program the nl loops (a slice for each turn, inner ones inside), the device prints, and the engines. Arrows
(flows) lead from each instruction to the readers of its results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nkitools.record.instruction_reader import instructions_between
from nkitools.record.prints.device_print import Print
from nkitools.report.perfetto_packets import ENGINE_TRACKS, Packets, annotate, describe

if TYPE_CHECKING:
    from nkitools.record.dependences import CompressedRows
    from nkitools.record.instruction_record import InstructionRecord
    from nkitools.record.record import Record
    from nkitools.record.run import Run

STEP = 1000  # nanoseconds, the smallest unit of a trace
LABEL = "order, not time"

_MOST_FLOWS = 32  # arrows into one instruction
_MEANING = (
    "Each instruction takes one step, in the order in which the simulator issued them. Lengths and gaps say nothing "
    "about how long a chip takes."
)


def order_trace(run: Run) -> bytes:
    """Return the trace of a run that has instructions."""
    return _Trace(run).written()


class _Trace:
    """The packets of a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.packets = Packets()
        self._number_flows(run.dependences.flow)

    def written(self) -> bytes:
        """All of them, as bytes."""
        run = self.run
        chip = f" on {run.chip}" if run.chip else ""
        root = self.packets.track(f"{run.kernel}{chip} ({LABEL})", description=_MEANING)
        base = 0
        for record in run.all_records:
            parent = root if record.rank is None else self.packets.track(f"rank {record.rank}", root, record.rank)
            prints = [one for one in run.prints if one.rank == record.rank]
            _Events(self, record, prints, parent, base).add()
            base += record.count
        return self.packets.written()

    def _number_flows(self, dependences: CompressedRows) -> None:
        """Give each arrow a number, and keep which begin and end at each instruction, and how many are left out."""
        self.begin: dict[int, list[int]] = {}
        self.end: list[list[int]] = []
        self.left_out: list[int] = []
        number = 0
        for position in range(len(dependences)):
            writers = [each for each in dependences[position].tolist() if each >= 0]
            self.end.append([])
            for writer in writers[-_MOST_FLOWS:]:
                number += 1
                self.begin.setdefault(writer, []).append(number)
                self.end[-1].append(number)
            self.left_out.append(len(writers) - len(self.end[-1]))


class _Events:
    """The events of one record."""

    def __init__(self, trace: _Trace, record: Record, prints: list[Print], parent: int, base: int) -> None:
        self.trace, self.packets = trace, trace.packets
        self.record = record
        self.prints = prints
        self.parent = parent
        self.base = base  # of the record's positions among the run's
        self.programs: dict[tuple[int, ...], int] = {}
        self.tracks: dict[tuple[tuple[int, ...], str], int] = {}
        self.several = len({program for _, program in record.programs}) > 1

    def add(self) -> None:
        """Add them all."""
        loops = {program: _Loops(self, program) for _, program in self.record.programs}
        for position, one in enumerate(instructions_between(self.record, 0, self.record.count)):
            loops[one.program].at(position)
            self._slice(position, one)
        for each in loops.values():
            each.shut(0)
        for printed in self.prints:
            self._print(printed)

    def track_of(self, program: tuple[int, ...], name: str) -> int:
        """Return the track of an engine, of the loops or the prints of a program, made at its first use."""
        found = self.tracks.get((program, name))
        if found is None:
            order = [*_FIRST, *ENGINE_TRACKS.values()]
            rank = order.index(name) if name in order else len(order)
            found = self.tracks[program, name] = self.packets.track(name, self._parent_of(program), rank)
        return found

    def _parent_of(self, program: tuple[int, ...]) -> int:
        if not self.several:
            return self.parent
        if program not in self.programs:
            name = f"program {', '.join(map(str, program)) or 0}"
            self.programs[program] = self.packets.track(name, self.parent, len(self.programs))
        return self.programs[program]

    def _slice(self, position: int, one: InstructionRecord) -> None:
        track = self.track_of(one.program, ENGINE_TRACKS.get(one.engine, one.engine))
        event = self.packets.event(self.packets.begin, position * STEP, track, one.name)
        event.flow_ids.extend(self.trace.begin.get(self.base + position, ()))
        event.terminating_flow_ids.extend(self.trace.end[self.base + position])
        describe(event, one, position)
        if self.trace.left_out[self.base + position]:
            annotate(event, "arrows left out", self.trace.left_out[self.base + position])
        self.packets.event(self.packets.end, (position + 1) * STEP, track)

    def _print(self, one: Print) -> None:
        self.packets.add_print(one, one.issued * STEP, self.track_of(one.program, "device prints"))


_FIRST = ("loops", "device prints")


class _Loops:
    """The turns of a program's nl loops as slices, inner ones inside of outer ones."""

    def __init__(self, events: _Events, program: tuple[int, ...]) -> None:
        self.events, self.packets = events, events.packets
        self.program = program
        self.open: list[int] = []  # loop states, outermost first
        self.latest = 0

    def at(self, position: int) -> None:
        """Move to the loops of the instruction at ``position``, which the program has issued."""
        chain = list(self._chain(self.events.record.states[position]))[::-1]
        kept = 0
        while kept < min(len(chain), len(self.open)) and chain[kept] == self.open[kept]:
            kept += 1
        self.shut(kept)
        for state in chain[kept:]:
            name, value = list(self.events.record.loops(state).items())[-1]
            track = self.events.track_of(self.program, "loops")
            self.packets.event(self.packets.begin, position * STEP, track, f"{name}={value}")
            self.open.append(state)
        self.latest = position + 1

    def shut(self, kept: int) -> None:
        """Close the open loops but the outermost ``kept`` of them."""
        while len(self.open) > kept:
            self.open.pop()
            track = self.events.track_of(self.program, "loops")
            self.packets.event(self.packets.end, self.latest * STEP, track)

    def _chain(self, state: int) -> Iterator[int]:
        while state >= 0:
            yield state
            state = self.events.record.outer_loop(state)
