"""Programs of a launch that touch the same elements, one of them writing, with nothing that orders them (NK502).

Found from the record once all programs have ended, whatever order they ran in: the accesses of each program to each
storage in shared HBM, the meetings that order them, and the bytes that they touch, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.history.epochs import Eras, between
from nkitools.history.overlap import grain, mark, picture_of_two, reach
from nkitools.history.shared_accesses import Program, SharedAccess, shared_accesses
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.finding import report

_TOUCHED, _WRITTEN = 1, 3

_DIVIDE = (
    "Divide the work by nl.program_id; where all programs compute the same, let one of them write: "
    "if nl.program_id(0) == 0."
)


class Race(NamedTuple):
    """Two accesses to one storage that nothing orders: how many bytes both touch, and the first of these."""

    storage: int
    first: SharedAccess
    second: SharedAccess
    byte: int
    nbytes: int

    def lines(self, record: Record) -> tuple[int, frozenset[Site]]:
        """Return the key of a race: the storage and the author's two lines."""
        return self.storage, frozenset(record.site_at(each.position) for each in (self.first, self.second))

    def kind(self, record: Record) -> tuple[Any, ...]:
        """Return what is counted together: the same lines the same way round."""
        return (*self.lines(record), self.first.written, self.second.written)


class _Group(NamedTuple):
    """The accesses of one program to a storage in one era, with their first and last bytes."""

    low: int
    high: int
    accesses: list[SharedAccess]


def report_races(record: Record, reporter: Reporter) -> None:
    """NK502 for each pair of lines that race for a storage, at the read, or at the later program's write.

    NK508 for each line by which all programs write the same values to the same place.
    """
    seen: set[Any] = set()
    for storage, accesses in shared_accesses(record).items():
        programs = sorted({access.program for access in accesses})
        if len(programs) < 2 or not any(access.written for access in accesses):
            continue
        marked = _with_replicated(accesses, programs)
        _report_replicated(record, reporter, storage, marked)
        for race in _races(record, storage, marked, programs):
            lines = race.lines(record)
            if lines not in seen:
                seen.add(lines)
                _report(record, reporter, race)


def _races(record: Record, storage: int, accesses: list[SharedAccess], programs: list[Program]) -> Iterator[Race]:
    eras = Eras(record.meetings, storage, programs)
    groups: dict[tuple[Program, int], list[SharedAccess]] = {}
    for access in accesses:
        groups.setdefault((access.program, eras.of(access.program, access.position)), []).append(access)
    spans = {key: _span(group) for key, group in groups.items()}
    for keys in eras.side_by_side():
        found: dict[Any, Race] = {}
        for cluster in _clusters([spans[key] for key in keys if key in spans]):
            for race in _clashes(record, storage, cluster):
                known = found.setdefault(race.kind(record), race)
                if known is not race:
                    found[race.kind(record)] = known._replace(nbytes=known.nbytes + race.nbytes)
        yield from found.values()


def _span(accesses: list[SharedAccess]) -> _Group:
    ends = [reach(access) for access in accesses]
    return _Group(min(low for low, _ in ends), max(high for _, high in ends), accesses)


def _clusters(groups: list[_Group]) -> Iterator[list[_Group]]:
    """Yield the groups that may have bytes in common, judged by their first and last bytes."""
    cluster: list[_Group] = []
    end = 0
    for group in sorted(groups, key=lambda each: each[:2]):
        if cluster and group.low >= end:
            yield from _contested(cluster)
            cluster = []
        cluster.append(group)
        end = max(end, group.high)
    yield from _contested(cluster)


def _contested(cluster: list[_Group]) -> Iterator[list[_Group]]:
    if len(cluster) == 2:  # of two, only what reaches into the other matters
        first, second = cluster
        low, high = second.low, min(first.high, second.high)
        near = [[access for access in each.accesses if _meets(access, low, high)] for each in cluster]
        cluster = [_span(accesses) for accesses in near if accesses]
    if len(cluster) > 1 and any(access.written for group in cluster for access in group.accesses):
        yield cluster


def _meets(access: SharedAccess, low: int, high: int) -> bool:
    first, end = reach(access)
    return first < high and end > low


class _Map(NamedTuple):
    """The bytes of a storage that a cluster touches, in units that are touched as a whole or not at all."""

    origin: int
    unit: int
    units: int

    @classmethod
    def of(cls, cluster: list[_Group]) -> _Map:
        """Return the map of a cluster."""
        origin = min(group.low for group in cluster)
        unit = grain((access for group in cluster for access in group.accesses), origin)
        return cls(origin, unit, (max(group.high for group in cluster) - origin) // unit)

    def of_all(self, accesses: Sequence[SharedAccess]) -> Array:
        """For each unit whether one of the accesses touches it (1), or writes it (3)."""
        flags: Array = np.zeros(self.units, np.uint8)
        for access in accesses:
            mark(flags, _WRITTEN if access.written else _TOUCHED, access, self.origin, self.unit)
        return flags


def _with_replicated(accesses: list[SharedAccess], programs: list[Program]) -> list[SharedAccess]:
    """Return the accesses, with those marked by which all programs write the same values to one view."""
    values: dict[tuple[Any, int], dict[Program, list[tuple[int, ...]]]] = {}
    for each in accesses:
        if each.written and each.lanes is None and each.rows is None:
            values.setdefault((each.layout, each.byte_offset), {}).setdefault(each.program, []).append(each.values)
    same = {
        view
        for view, of_programs in values.items()
        if len(of_programs) == len(programs)
        and all(of_programs[programs[0]])
        and all(each == of_programs[programs[0]] for each in of_programs.values())
    }
    return [
        each._replace(replicated=True)
        if each.written and each.lanes is None and each.rows is None and (each.layout, each.byte_offset) in same
        else each
        for each in accesses
    ]


def _clashes(record: Record, storage: int, cluster: list[_Group]) -> Iterator[Race]:
    """Yield the races in a cluster: one for each pair of lines, at the first bytes that they race for."""
    chart = _Map.of(cluster)
    left = _contested_units(chart, cluster)
    while left.any():
        unit = int(np.argmax(left))
        first, second = _pair(chart, cluster, unit)
        both = left.copy()
        for one in (first, second):
            both &= chart.of_all(list(_like(record, one, cluster))).astype(np.bool_)
        byte = chart.origin + unit * chart.unit
        yield Race(storage, first, second, byte, int(np.count_nonzero(both)) * chart.unit)
        left &= ~both


def _like(record: Record, access: SharedAccess, cluster: list[_Group]) -> Iterator[SharedAccess]:
    """Yield what the same program does the same way by the same line."""
    site = record.site_at(access.position)
    for group in cluster:
        for each in group.accesses:
            same = each.program == access.program and each.written == access.written
            if same and record.site_at(each.position) == site:
                yield each


def _contested_units(chart: _Map, cluster: list[_Group]) -> Array:
    """Return the units that programs race for.

    What all of them write alike they may write in any order. It clashes with what one of them writes besides; and with
    what another one reads where it changes, since the reader may see it before or after its time.
    """
    touched: Array = np.zeros(chart.units, np.uint16)
    alike: Array = np.zeros(chart.units, np.uint16)
    changing: Array = np.zeros(chart.units, np.uint16)
    written: Array = np.zeros(chart.units, np.bool_)
    own = []
    for group in cluster:
        flags = chart.of_all([each for each in group.accesses if not each.replicated])
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


def _values_of(chart: _Map, group: _Group) -> Array:
    """Return how many values the writes that all programs have alike give to each unit, one after the other."""
    views: dict[tuple[Any, int], list[SharedAccess]] = {}
    for each in group.accesses:
        if each.replicated:
            views.setdefault((each.layout, each.byte_offset), []).append(each)
    count: Array = np.zeros(chart.units, np.uint16)
    for accesses in views.values():
        written = {value for each in accesses for value in each.values}
        count += (chart.of_all(accesses[:1]) > 0).astype(np.uint16) * len(written)
    return count


def _clash(first: SharedAccess, second: SharedAccess) -> bool:
    """Return whether two accesses to one contested element by two programs are what it is contested by."""
    return not (first.replicated and second.replicated) and (first.written or second.written)


def _pair(chart: _Map, cluster: list[_Group], unit: int) -> tuple[SharedAccess, SharedAccess]:
    """Two accesses of different programs that race for a unit; two writes where there are two."""
    byte = chart.origin + unit * chart.unit
    near = [each for group in cluster for each in group.accesses if _meets(each, byte, byte + 1)]
    there = [each for each in near if chart.of_all([each])[unit]]
    there.sort(key=lambda access: (access.program, access.position))
    pairs = [
        (first, second)
        for first in there
        for second in there
        if first.program < second.program and _clash(first, second)
    ]
    return next((pair for pair in pairs if pair[0].written and pair[1].written), pairs[0])


# --- what is said ----------------------------------------------------------------------------------------------------


def _report(record: Record, reporter: Reporter, race: Race) -> None:
    here, there = race.second, race.first
    if here.written and not there.written:
        here, there = there, here
    known = record.storages[race.storage]
    itemsize = as_dtype(known.dtype).itemsize
    count = max(1, race.nbytes // itemsize)
    index = [int(each) for each in np.unravel_index(race.byte // itemsize, known.shape)]
    tensor = _tensor(record, race.storage)
    other = record.site_at(there.position)
    message = (
        f"{_named(here.program)} {'writes' if here.written else 'reads'} {_counted(count)} of {tensor} that "
        f"{_named(there.program)} {'writes' if there.written else 'reads'} at {other.file}:{other.line}, and nothing "
        f"says which of them comes first; the first element is {index}{_in_vain(record, race)}"
    )
    state = record.states[here.position]
    with reporter.placed(record.site_at(here.position), program=here.program, loops=record.loops(state)):
        report(
            "NK502",
            message,
            remedy=_DIVIDE if _is_replicated(record, race) else "",
            picture=lambda: picture_of_two(there, here, known.shape, itemsize),
        )


def _report_replicated(record: Record, reporter: Reporter, storage: int, accesses: list[SharedAccess]) -> None:
    said: set[Site] = set()
    first = min(access.program for access in accesses)
    for access in accesses:
        site = record.site_at(access.position)
        if not access.replicated or access.program == first or site in said:
            continue
        said.add(site)
        with reporter.placed(site, program=access.program, loops=record.loops(record.states[access.position])):
            report(
                "NK508",
                f"{_named(access.program)} writes the same values to {_tensor(record, storage)} as {_named(first)}",
            )


def _is_replicated(record: Record, race: Race) -> bool:
    """Return whether both programs write the same view by the same line, as if there were one program only."""
    first, second = race.first, race.second
    if not (first.written and second.written) or first[2:4] != second[2:4]:
        return False
    return record.site_at(first.position) == record.site_at(second.position)


def _in_vain(record: Record, race: Race) -> str:
    """Return the barriers between the two accesses that are about other tensors."""
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


def _counted(count: int) -> str:
    return "an element" if count == 1 else f"{count} elements"
