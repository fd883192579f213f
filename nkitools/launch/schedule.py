"""Dependency edges between named instructions (``with_schedule``), checked against the instructions of a launch.

Source: How to Use the NKI Scheduling APIs (SDK 2.32). It says that the compiler checks the edges, not how. Here each
name must belong to one instruction, and the order must be possible: no cycle, and not against data dependences or a
``nl.no_reorder()`` block. A name given in a Python loop belongs to one instruction in each turn; in a loop on the
device it is one instruction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from nkitools.facts.light_classes import dataclass
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import UNKNOWN, Site, author_frame, site_at
from nkitools.rules.finding import refuse, report

_MANY = 12  # so many names are listed


Edge: TypeAlias = tuple[str, str | Sequence[str]]  # the later instruction, and the ones that it runs after


@dataclass(frozen=True)
class Schedule:
    """``edges``: pairs (later, earlier) of names of instructions; ``site``: where the author wrote them."""

    edges: tuple[tuple[str, str], ...]
    site: Site

    @property
    def names(self) -> list[str]:
        """Every name once, in the order of the edges."""
        return list(dict.fromkeys(name for edge in self.edges for name in edge))


def schedule_of(edges: Sequence[Edge]) -> Schedule:
    """Return the edges of a list of pairs (name, name or names that it runs after). Errors: NK609 (form, cycles)."""
    if not isinstance(edges, (list, tuple)):
        refuse("NK609", f"with_schedule takes a list of pairs of names, it is given {type(edges).__name__}")
    pairs = tuple(pair for edge in edges for pair in _pairs(edge))
    cycle = _cycle(pairs)
    if cycle:
        message = (
            f"with_schedule: {' after '.join(f'`{name}`' for name in cycle)} is a circle, so that none of them can run"
        )
        refuse("NK609", message, remedy="Each pair is (later, earlier): take out the one that turns the order round.")
    frame = author_frame()
    site = UNKNOWN if frame is None else site_at(frame.f_code, frame.f_lineno, frame.f_lasti)
    return Schedule(pairs, site)


def _pairs(edge: Edge) -> Iterator[tuple[str, str]]:
    later, earlier = edge if isinstance(edge, (list, tuple)) and len(edge) == 2 else (None, None)
    producers = earlier if isinstance(earlier, (list, tuple)) else [earlier]
    if not all(isinstance(name, str) for name in (later, *producers)):
        message = f"with_schedule: {edge!r} is no pair of an instruction's name and the names that it runs after"
        remedy = 'Write ("later", "earlier") or ("later", ["earlier", "another"]), by the name= of instructions.'
        refuse("NK609", message, remedy=remedy)
    return ((str(later), str(name)) for name in producers)


def _cycle(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of a cycle, each after the next one, beginning and ending with the same; [] without a cycle."""
    from graphlib import CycleError, TopologicalSorter

    order = TopologicalSorter[str]()
    for later, earlier in pairs:
        order.add(later, earlier)
    try:
        order.prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def check_schedule(schedule: Schedule, record: Record, reporter: Reporter) -> None:
    """NK609, at the author's call of with_schedule: names that no or several instructions have, an impossible order."""
    programs: dict[tuple[int, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for program, position, name in record.labels:
        programs[program][name].append(position)
    known = {name for labels in programs.values() for name in labels}
    with reporter.placed(schedule.site):
        for name in schedule.names:
            # A loop on the device without a turn issues nothing here, and is compiled all the same.
            if name not in known and not record.skipped_loop:
                _report_unknown(name, sorted(known), record)
        for program, labels in programs.items():
            _check_program(schedule, program, labels, record)


def _report_unknown(name: str, known: list[str], record: Record) -> None:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3)
    if near:
        remedy = f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    elif any(storage.name == name for storage in record.storages.values()):
        remedy = "It is the name of a tensor; an edge is between instructions, by the name= of their calls."
    elif known:
        more = f", and {len(known) - _MANY} more" if len(known) > _MANY else ""
        remedy = f"The instructions of this run are named {', '.join(known[:_MANY])}{more}."
    else:
        remedy = f'No instruction of this run has a name: pass name="{name}" to the call that you mean.'
    report("NK609", f"with_schedule names `{name}`, a name that no instruction of the kernel has", remedy=remedy)


def _check_program(schedule: Schedule, program: tuple[int, ...], labels: dict[str, list[int]], record: Record) -> None:
    ambiguous = [name for name in schedule.names if len(labels.get(name, ())) > 1]
    for name in ambiguous:
        positions = labels[name]
        lines = ", ".join(str(line) for line in sorted({record.site_at(at).line for at in positions if at >= 0}))
        message = (
            f"with_schedule names `{name}`, the name of {len(positions)} instructions (line {lines}); an edge is "
            "between two"
        )
        report("NK609", message, remedy=f'Give each a name of its own, name=f"{name}{{i}}" in a loop.')
    placed = {name: at[0] for name, at in labels.items() if len(at) == 1 and at[0] >= 0}
    edges = [(later, earlier) for later, earlier in schedule.edges if later in placed and earlier in placed]
    order = _Order(record, program, [(placed[later], placed[earlier]) for later, earlier in edges])
    for later, earlier in edges:
        reason = order.against(placed[later], placed[earlier])
        if reason:
            message = f"with_schedule lets `{later}` run after `{earlier}`, {reason} `{later}`, so that neither can run"
            remedy = "Each pair is (later, earlier): perhaps the two names stand the wrong way round."
            report("NK609", message, remedy=remedy)


class _Order:
    """The order that the instructions of one program must keep, by their data and by other edges."""

    def __init__(self, record: Record, program: tuple[int, ...], edges: list[tuple[int, int]]) -> None:
        self.record = record
        self.program = program
        self.following: dict[int, list[int]] = defaultdict(list)
        for later, earlier in edges:
            self.following[earlier].append(later)
        self.last = max((position for edge in edges for position in edge), default=-1)

    def against(self, later: int, earlier: int) -> str:
        """Return why ``later``, which the program issues first, cannot wait for ``earlier``; '' if it can."""
        if later > earlier:
            return ""
        stretches = [(start, end) for program, start, end in self.record.ordered if program == self.program]
        if any(start <= later and earlier < end for start, end in stretches):
            return "which nl.no_reorder() keeps behind"
        if earlier in self._forced_after(later):
            return "which needs the data or the place of"
        return ""

    def _forced_after(self, start: int) -> set[int]:
        """Return the instructions that cannot run before ``start`` has."""
        forced, waiting = {start}, [start]
        while waiting:
            earlier = waiting.pop()
            new = {*self.following[earlier], *self._dependents[earlier]} - forced
            forced |= new
            waiting.extend(new)
        return forced

    @cached_property
    def _dependents(self) -> dict[int, list[int]]:
        """The instructions of the program that depend on each of its instructions."""
        from nkitools.record.dependences import Dependences

        dependences, found = Dependences([self.record]), defaultdict[int, list[int]](list)
        for position in range(self.last + 1):
            if self.record.program_at(position) == self.program:
                for rows in (dependences.flow, dependences.output, dependences.anti):
                    for source in rows[position].tolist():
                        found[source].append(position)
        return found
