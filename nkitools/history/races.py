"""Races: programs of a launch touch the same elements, one of them writes, and nothing orders them (NK502).

Found from the record after all programs have ended, for any order of running: the accesses of each program to each
storage in shared HBM, the meetings that order them, and the exact bytes that they touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import picture_of
from nkitools.history.epochs import Eras, Program, between
from nkitools.history.shared_accesses import SharedAccess, SharedStorage, shared_storages
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import row_lengths
from nkitools.record.dataflow.cells import Cells, cells_of, touched_elements
from nkitools.record.dataflow.pieces import View
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.finding import Picture, report

_TOUCHED, _WRITTEN = 1, 3

_DIVIDE = (
    "Divide the work by nl.program_id; where all programs compute the same, let one of them write: "
    "if nl.program_id(0) == 0."
)


class Race(NamedTuple):
    """Two accesses to one storage that nothing orders.

    ``byte``: the first contested one. ``parts``: all contested cells that the lines of both touch.
    """

    storage: int
    first: SharedAccess
    second: SharedAccess
    byte: int
    parts: tuple[tuple[Cells, Array], ...]  # an entry for each of the races that are reported as one

    def elements(self, count: int, itemsize: int) -> Array:
        """Return a mask of the elements of the storage that the race is about."""
        each = (cells.elements(numbers, count, itemsize) for cells, numbers in self.parts)
        return np.asarray(np.logical_or.reduce(list(each)))

    def lines(self, record: Record) -> tuple[int, frozenset[Site]]:
        """Return the key of a race: the storage and the author's two lines."""
        return self.storage, frozenset(record.site_at(each.position) for each in (self.first, self.second))

    def kind(self, record: Record) -> tuple[Any, ...]:
        """Return the key of the races that are reported as one: equal lines that read or write alike."""
        return (*self.lines(record), self.first.written, self.second.written)


def report_races(record: Record, columns: Columns, reporter: Reporter) -> None:
    """Report NK502 for each pair of lines that race for a storage: at the read, or at the later program's write.

    NK508 for each line by which all programs write the same values to the same place, or several into a dump row.
    """
    seen: set[Any] = set()
    for shared in shared_storages(record, columns):
        programs = sorted({access.program for access in shared.accesses})
        fences = [each for each in shared.accesses if _is_fence(record, each)]
        others = [each for each in shared.accesses if each not in fences]
        _report_fences(record, reporter, shared.storage, fences)
        marked = shared._replace(accesses=_with_replicated(others, programs))
        _report_replicated(record, reporter, marked)
        for race in _races(record, marked, programs):
            lines = race.lines(record)
            if lines not in seen:
                seen.add(lines)
                say = _report_dump_row if _is_dump_row(record, marked, race) else _report
                say(record, reporter, race)


def _races(record: Record, shared: SharedStorage, programs: list[Program]) -> Iterator[Race]:
    eras = Eras(record.meetings, shared.storage, programs)
    groups: dict[tuple[Program, int], list[SharedAccess]] = {}
    for access in shared.accesses:
        groups.setdefault((access.program, eras.of(access.program, access.position)), []).append(access)
    for keys in eras.side_by_side():
        found: dict[Any, Race] = {}
        for race in _clashes(record, shared, [groups[key] for key in keys if key in groups]):
            known = found.setdefault(race.kind(record), race)
            if known is not race:
                found[race.kind(record)] = known._replace(parts=known.parts + race.parts)
        yield from found.values()


class _Chart:
    """The parts of a storage, for concurrent accesses: an access touches all of a part or nothing of it.

    ``groups``: for each program its accesses between two meetings.
    ``numbers``: the parts that they touch, ascending.
    ``places``: for each view, the indices of its parts in ``numbers``.
    """

    def __init__(self, groups: Sequence[Sequence[SharedAccess]], parts: Mapping[View, Array]) -> None:
        self.groups = groups
        views = dict.fromkeys(each.view for group in groups for each in group)
        several = [parts[view] for view in views]
        self.numbers, places = np.unique(np.concatenate(several), return_inverse=True)
        cuts = np.cumsum([each.size for each in several])[:-1]
        self.places = dict(zip(views, np.split(places.reshape(-1), cuts), strict=True))

    def of_all(self, accesses: Iterable[SharedAccess]) -> Array:
        """Return for each part whether one of the accesses touches it (1), or writes it (3)."""
        flags: Array = np.zeros(self.numbers.size, np.uint8)
        for each in accesses:
            flags[self.places[each.view]] |= _WRITTEN if each.written else _TOUCHED
        return flags

    def views_of(self, chosen: Array) -> list[View]:
        """Return the views that touch chosen parts."""
        return [view for view, places in self.places.items() if chosen[places].any()]

    def touching(self, part: int) -> list[SharedAccess]:
        """Return the accesses that touch a part, sorted by program and position."""
        there = [each for group in self.groups for each in group if part in self.places[each.view]]
        return sorted(there, key=lambda access: (access.program, access.position))


def _with_replicated(accesses: list[SharedAccess], programs: list[Program]) -> list[SharedAccess]:
    """Return the accesses, and mark those by which all programs write equal values to one view."""
    values: dict[View, dict[Program, list[tuple[int, ...]]]] = {}
    for each in accesses:
        if each.written:
            values.setdefault(each.view, {}).setdefault(each.program, []).append(each.values)
    same = {
        view
        for view, of_programs in values.items()
        if len(of_programs) == len(programs)
        and all(of_programs[programs[0]])
        and all(each == of_programs[programs[0]] for each in of_programs.values())
    }
    return [each._replace(replicated=each.written and each.view in same) for each in accesses]


def _clashes(record: Record, shared: SharedStorage, groups: Sequence[list[SharedAccess]]) -> Iterator[Race]:
    """Yield the races between groups: one for each pair of lines, at the first byte that they race for."""
    if len(groups) < 2 or not any(access.written for group in groups for access in group):
        return
    chart = _Chart(groups, shared.pieces)
    left = _contested(chart)
    if not left.any():
        return
    cells = cells_of(chart.views_of(left), row_lengths(record.storages[shared.storage]))
    chart = _Chart([[each for each in group if each.view in cells.by_view] for group in groups], cells.by_view)
    left = _contested(chart)
    while left.any():
        part = int(np.argmax(left))
        first, second = _pair(chart, part)
        both = left.copy()
        for one in (first, second):
            both &= chart.of_all(_like(record, one, chart)) > 0
        byte = cells.first_byte(int(chart.numbers[part]))
        yield Race(shared.storage, first, second, byte, ((cells, chart.numbers[both]),))
        left &= ~both


def _like(record: Record, access: SharedAccess, chart: _Chart) -> Iterator[SharedAccess]:
    """Yield the accesses of the same program and line that also read, or also write."""
    site = record.site_at(access.position)
    for group in chart.groups:
        for each in group:
            same = each.program == access.program and each.written == access.written
            if same and record.site_at(each.position) == site:
                yield each


def _contested(chart: _Chart) -> Array:
    """Return for each part whether programs race for it.

    Programs may write the same value to one place in any order. It is a race if one writes another value there, or if
    one reads a place whose value the write changes: it may read before or after.
    """
    touched, alike, changing = (np.zeros(chart.numbers.size, np.uint16) for _ in range(3))
    written: Array = np.zeros(chart.numbers.size, np.bool_)
    own = []
    for group in chart.groups:
        flags = chart.of_all(each for each in group if not each.replicated)
        touched += flags > 0
        written |= flags == _WRITTEN
        values = _values_of(chart, group)
        alike += values > 0
        changing += values > 1
        own.append((flags, values))
    contested = written & (touched > 1)
    for flags, values in own:
        contested |= (flags == _WRITTEN) & (alike > (values > 0))
        contested |= (flags > 0) & (changing > (values > 1))
    return np.asarray(contested)


def _values_of(chart: _Chart, group: Sequence[SharedAccess]) -> Array:
    """Return for each part the number of values that a group's replicated writes give it one after another."""
    views: dict[View, list[SharedAccess]] = {}
    for each in group:
        if each.replicated:
            views.setdefault(each.view, []).append(each)
    count: Array = np.zeros(chart.numbers.size, np.uint16)
    for accesses in views.values():
        written = {value for each in accesses for value in each.values}
        count += (chart.of_all(accesses[:1]) > 0).astype(np.uint16) * len(written)
    return count


def _clash(first: SharedAccess, second: SharedAccess) -> bool:
    """Return whether two accesses of different programs to a contested element race with each other."""
    return not (first.replicated and second.replicated) and (first.written or second.written)


def _pair(chart: _Chart, part: int) -> tuple[SharedAccess, SharedAccess]:
    """Return two accesses of different programs that race for a part, two writes if possible."""
    there = chart.touching(part)
    pairs = [
        (first, second)
        for first in there
        for second in there
        if first.program < second.program and _clash(first, second)
    ]
    return next((pair for pair in pairs if pair[0].written and pair[1].written), pairs[0])


# --- messages --------------------------------------------------------------------------------------------------------


def _report(record: Record, reporter: Reporter, race: Race) -> None:
    here, there = race.second, race.first
    if here.written and not there.written:
        here, there = there, here
    known = record.storages[race.storage]
    itemsize = as_dtype(known.dtype).itemsize
    contested = race.elements(prod(known.shape), itemsize).reshape(known.shape)
    what = _counted(int(np.count_nonzero(contested)))
    tensor, name = _tensor(record, race.storage), record.name_of(race.storage) or ""
    other = record.site_at(there.position)
    message = (
        f"{_named(here.program)} {'writes' if here.written else 'reads'} {what} of {tensor} that "
        f"{_named(there.program)} {'writes' if there.written else 'reads'} at {other.file}:{other.line}, and nothing "
        f"says which of them comes first: {_boxes(name, contested)}{_in_vain(record, race)}"
    )
    state = record.states[here.position]
    with reporter.placed(record.site_at(here.position), program=here.program, loops=record.loops(state)):
        report(
            "NK502",
            message,
            remedy=_DIVIDE if _is_replicated(record, race) else _second_barrier(record, race),
            picture=lambda: _picture(there, here, known.shape, itemsize),
        )


def _second_barrier(record: Record, race: Race) -> str:
    """Return the remedy if the tensor has a barrier, but not between the two accesses; '' without a barrier."""
    if not any(each.storage in (-1, race.storage) for each in record.meetings):
        return ""
    return (
        "There is a barrier of this tensor, and not between these two accesses: in a loop the next turn needs a second "
        "one, after the reads; or let the turns alternate between two tensors."
    )


def _picture(first: SharedAccess, second: SharedAccess, shape: tuple[int, ...], itemsize: int) -> Picture:
    """Return a picture of the elements of a storage that two accesses touch, one or both."""
    codes: Array = np.zeros(prod(shape), np.uint8)
    signs = {0: (".", "neither"), 3: ("#", "both")}
    for code, access in enumerate((first, second), start=1):
        codes |= touched_elements(access.view, codes.size, itemsize) * np.uint8(code)
        signs[code] = ("ab"[code - 1], f"{_named(access.program)} {'writes' if access.written else 'reads'}")
    return picture_of(codes.reshape(shape), dict(sorted(signs.items())))


def _report_replicated(record: Record, reporter: Reporter, shared: SharedStorage) -> None:
    said: set[Site] = set()
    first = min(access.program for access in shared.accesses)
    for access in shared.accesses:
        site = record.site_at(access.position)
        if not access.replicated or access.program == first or site in said:
            continue
        said.add(site)
        tensor = _tensor(record, shared.storage)
        with reporter.placed(site, program=access.program, loops=record.loops(record.states[access.position])):
            report("NK508", f"{_named(access.program)} writes the same values to {tensor} as {_named(first)}")


def _is_fence(record: Record, access: SharedAccess) -> bool:
    """Return whether the access is part of a DMA that copies a view onto itself: no element changes."""
    if access.view.part is not None or record.plan_at(access.position).name != "dma_copy":
        return False
    places = {(each.storage, each.layout, each.byte_offset) for each in record.accesses(access.position)}
    return len(places) == 1


def _report_fences(record: Record, reporter: Reporter, storage: int, fences: list[SharedAccess]) -> None:
    """Report NK508 for each line by which several programs copy a tensor onto itself, as if to wait for DMAs."""
    first: dict[Site, Program] = {}
    said: set[Site] = set()
    for access in fences:
        site = record.site_at(access.position)
        other = first.setdefault(site, access.program)
        if other == access.program or site in said:
            continue
        said.add(site)
        message = f"{_named(access.program)} copies {_tensor(record, storage)} onto itself, and so does {_named(other)}"
        with reporter.placed(site, program=access.program, loops=record.loops(record.states[access.position])):
            report("NK508", message)


def _is_dump_row(record: Record, shared: SharedStorage, race: Race) -> bool:
    """Return whether a race is about the last row alone, which only programs that scatter into it gather again.

    Production kernels use that row for padding, and the caller cuts it off. Sums in turns gather and scatter it again.
    """
    known = record.storages[race.storage]
    itemsize, count = as_dtype(known.dtype).itemsize, prod(known.shape)
    last = count - count // known.shape[0]
    by_index = all(each.view.part is not None for each in (race.first, race.second))
    if not by_index or len(known.shape) < 2 or race.byte // itemsize < last:
        return False
    there = [each for each in shared.accesses if touched_elements(each.view, count, itemsize)[last:].any()]
    scatters = {each.program for each in there if each.written}
    return all(each.written or (each.view.part is not None and each.program in scatters) for each in there)


def _report_dump_row(record: Record, reporter: Reporter, race: Race) -> None:
    """Report NK508 for a race about a row of padding, whose values are of no consequence."""
    access, tensor = race.second if race.second.written else race.first, _tensor(record, race.storage)
    other = race.first if access is race.second else race.second
    message = (
        f"{_named(access.program)} scatters into the last row of {tensor}, which {_named(other.program)} "
        f"{'scatters into' if other.written else 'gathers'} too, and no instruction reads that row without an index; "
        "which values stay there is not defined"
    )
    remedy = "Leave padding out with oob_mode=nisa.oob_mode.skip, or cut the row off."
    with reporter.placed(
        record.site_at(access.position), program=access.program, loops=record.loops(record.states[access.position])
    ):
        report("NK508", message, remedy=remedy)


def _is_replicated(record: Record, race: Race) -> bool:
    """Return whether both programs write the same view at the same line."""
    first, second = race.first, race.second
    places = {((each.view.part or each.view).layout, each.view.byte) for each in (first, second)}
    if not (first.written and second.written) or len(places) > 1:
        return False
    return record.site_at(first.position) == record.site_at(second.position)


def _in_vain(record: Record, race: Race) -> str:
    """Return a sentence about barriers of other tensors between the two accesses; '' if there are none."""
    positions = (race.first.position, race.second.position)
    programs = (race.first.program, race.second.program)
    others = dict.fromkeys(
        record.name_of(each.storage) or "another tensor"
        for each in between(record.meetings, positions, programs)
        if each.storage != -1
    )
    names = ", ".join(f"`{name}`" for name in others)
    return f". The barrier between them is that of {names}, and orders nothing else" if others else ""


def _tensor(record: Record, storage: int) -> str:
    known, name = record.storages[storage], record.name_of(storage)
    return f"tensor {f'`{name}` ' if name else ''}({known.memory}, {known.dtype} {list(known.shape)})"


def _named(program: Program) -> str:
    return f"program {', '.join(map(str, program))}"


def _boxes(name: str, mask: Array) -> str:
    return boxes_text(f"`{name}", mask, "`")


def _counted(count: int) -> str:
    return "an element" if count == 1 else f"{count} elements"
