"""The timeline of a run: its instructions on the engines of each core, scheduled by costs and dependences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.laws import profiled
from nkitools.facts.versions import LEGACY, versions_of
from nkitools.record.columns import Columns, program_numbers
from nkitools.timing.durations import DMA, ENGINES, LEFT_OUT, TENSOR, Time, balance, clock_of, times
from nkitools.timing.forwarded import forwarded
from nkitools.timing.knobs import Knobs
from nkitools.timing.loaded_once import loaded_once
from nkitools.timing.operations import Operations
from nkitools.timing.queues import RINGS, ahead, lanes, order_of, waits_ns
from nkitools.timing.repeated import repeated
from nkitools.timing.reuse import reuse_edges
from nkitools.timing.schedule import Schedule, Work, schedule
from nkitools.timing.tables import load_ns, table_loads

if TYPE_CHECKING:
    from nkitools.record.dependences import CompressedRows, Dependences
    from nkitools.record.run import Run

_SEMAPHORE_NS = 64.0  # from one engine to another, where no result is read
# What starts a later instruction while an earlier one waits, in the modern dialect, where profiles show the transfers.
GO_AHEAD = LEFT_OUT, TENSOR


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """The work of a run and its schedule."""

    work: Work
    schedule: Schedule
    cores: int
    left_out: Array  # the loads that the compiler is assumed to leave out: what they bring is there
    operations: Sequence[Operations]  # of each record

    @property
    def columns(self) -> list[Columns]:
        """Return the columns of each record."""
        return [each.columns for each in self.operations]

    @property
    def span_ns(self) -> float:
        """Return the nanoseconds from the start of the first instruction to the end of the last one."""
        return float(self.schedule.ends.max()) if self.schedule.ends.size else 0.0

    @cached_property
    def kinds(self) -> Array:
        """Return the engine of each instruction, by its number on every core."""
        return np.asarray(self.work.engines % len(ENGINES))

    @property
    def core_numbers(self) -> Array:
        """Return the core of each instruction."""
        return np.asarray(self.work.engines // len(ENGINES) % self.cores)

    @property
    def starts_ns(self) -> Array:
        """Return when instructions start, in whole nanoseconds, rounded down: what does not overlap still does not."""
        return self.schedule.starts.astype(np.int64)

    @property
    def begins_ns(self) -> Array:
        """Return when instructions begin on their engines, as `starts_ns`: transfers may wait for others there."""
        return self.schedule.begins.astype(np.int64)

    @property
    def lanes(self) -> Array:
        """Return the engine of each instruction by its number, those of a core after those of the one before."""
        return np.asarray(self.kinds + self.core_numbers * len(ENGINES))

    @property
    def freed_ns(self) -> Array:
        """Return when instructions let go of their engines, as `starts_ns`."""
        return np.asarray((self.schedule.begins + self.schedule.occupied).astype(np.int64))

    @property
    def ends_ns(self) -> Array:
        """Return when instructions have ended, as `starts_ns`."""
        return self.schedule.ends.astype(np.int64)

    def busy_ns(self) -> Array:
        """Return how long each engine of each core is occupied, (cores, engines)."""
        busy = np.bincount(self.lanes, self.schedule.occupied, minlength=self.cores * len(ENGINES))
        return np.asarray(busy.reshape(self.cores, len(ENGINES)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """The work of one record: arrays over its instructions, and edges whose positions are those of the whole run."""

    cores: int
    engines: Array
    occupied: Array
    durations: Array
    shared: Array
    rows: Array
    lanes: Array  # the queue of each transfer
    targets: Array  # of the edges that are no dependences
    sources: Array
    later: Array  # loads that wait until an instruction begins to read
    readers: Array  # these instructions
    left_out: Array
    late: Array  # the instructions that the compiler moves to the first use of their results
    renewals: Array  # those with which a tile begins anew
    meetings: Array  # the instructions that receive what others send


@dataclass(frozen=True, kw_only=True)
class _Model:
    """The rules by which the instructions of a run take their time.

    ``reorders``: the compiler changes the order on an engine. ``as_written``: it leaves out no load. ``is_profiled``:
    profiles show laws of transfers.
    """

    chip: Generation
    knobs: Knobs
    reorders: bool
    as_written: bool
    is_profiled: bool


def work_of(
    operations: Sequence[Operations],
    dependences: Dependences,
    chip: Generation,
    knobs: Knobs,
    *,
    reorders: bool,
    as_written: bool = False,
) -> tuple[Work, int, Array]:
    """Return the work of a run, its number of cores, and the loads that the compiler is assumed to leave out.

    ``reorders``: the compiler changes the order on an engine. ``as_written``: it leaves out no load.
    """
    is_profiled = profiled(chip.short_name, "DMA", "DMA_PACKET", "packet") is not None
    model = _Model(chip=chip, knobs=knobs, reorders=reorders, as_written=as_written, is_profiled=is_profiled)
    flow, output = pairs_of(dependences.flow), pairs_of(dependences.output)
    parts, base, core = list[_Part](), 0, 0
    for each in operations:
        part = _part_of(each, base, core, dependences.flow, flow, model)
        parts.append(part)
        base, core = base + part.engines.size, core + part.cores

    def joined(name: str, kind: type = np.int64) -> Array:
        return np.concatenate([getattr(each, name) for each in parts]) if parts else np.zeros(0, kind)

    every, lane = joined("engines"), joined("lanes")
    occupied, durations = joined("occupied", float), joined("durations", float)
    edges = _edges(
        flow,
        output,
        pairs_of(dependences.anti),
        every,
        knobs,
        durations - occupied,
        (joined("targets"), joined("sources")),
        joined("meetings"),
        joined("renewals"),
    )
    later, readers = joined("later"), joined("readers")
    filled = later, readers, -durations[readers]
    targets, sources, lags = (np.concatenate(pair) for pair in zip(edges, filled, strict=True))
    every, count = every + lane * core * len(ENGINES), int(lane.max(initial=0)) + 1
    waits = waits_ns(flow, every, chip)
    occupied, durations = occupied + waits, durations + waits
    go_ahead = GO_AHEAD if is_profiled else (DMA, LEFT_OUT)
    in_order = [not reorders and kind not in go_ahead for kind in range(len(ENGINES))]
    work = Work(
        engines=every,
        order=order_of([flow, output], every.size, joined("late")),
        shared=joined("shared", float),
        rows=joined("rows", float),
        clock=clock_of(chip),
        waits=waits,
        occupied=occupied,
        durations=durations,
        targets=targets,
        sources=sources,
        lags=lags,
        in_order=in_order * core * count,
        queues=[RINGS if kind == DMA else 0 for kind in range(len(ENGINES))] * core * count,
        pools=[number // len(ENGINES) % core for number in range(len(ENGINES) * core * count)],
    )
    return work, core, joined("left_out")


def _part_of(
    operations: Operations, base: int, core: int, dependences: CompressedRows, flow: tuple[Array, Array], model: _Model
) -> _Part:
    """Return the work of a record, whose first instruction and core have the numbers ``base`` and ``core``."""
    columns, none = operations.columns, np.zeros(0, np.int64)
    which, found = times(columns, model.chip, model.knobs, reorders=model.reorders)
    again, originals, loads = none, none, none
    if model.reorders:
        again, originals = repeated(columns, dependences, base)
        found.append(Time(engine=LEFT_OUT, occupied=0.0, duration=0.0))
        if model.is_profiled and not model.as_written:
            loads, brought = loaded_once(operations, dependences, base, model.chip)
            again, originals = np.concatenate((again, loads)), np.concatenate((originals, brought))
        which[again] = len(found) - 1
        which[forwarded(operations, flow[0] - base, flow[1] - base)] = len(found) - 1
    own, cores = _cores_of(columns, reorders=model.reorders)
    mine = np.array([each.engine for each in found], np.int64)[which]
    for each in range(cores):
        balance(which, found, mine, np.flatnonzero(own == each))
    occupied, durations = _times_on(which, found, mine)
    if loading := load_ns(model.chip):
        loads_table = table_loads(columns, mine, own)
        occupied[loads_table] += loading
        durations[loads_table] += loading
    by_line = model.is_profiled and not model.reorders
    late, renewals = (operations.named("memset"), operations.renewals) if by_line else (none, none)
    reused = reuse_edges(columns, model.chip, own, renewals, late)
    later, readers = ahead(operations, flow, base, own) if by_line else (none, none)
    queues = np.zeros_like(mine)
    if model.is_profiled:
        queues = lanes(operations, mine, flow, base, reorders=model.reorders)
    return _Part(
        cores=cores,
        engines=mine + (core + own) * len(ENGINES),
        occupied=occupied,
        durations=durations,
        shared=np.array([each.shared for each in found])[which],
        rows=np.array([each.rows for each in found])[which],
        lanes=queues,
        targets=np.concatenate((again, reused[0])) + base,
        sources=np.concatenate((originals, reused[1])) + base,
        later=later,
        readers=readers,
        left_out=loads + base,
        late=late + base,
        renewals=renewals + base,
        meetings=np.array([base + each.position for each in columns.record.beside.transfers], np.int64),
    )


def _cores_of(columns: Columns, *, reorders: bool) -> tuple[Array, int]:
    """Return the core of each instruction, and how many there are: a core for each program.

    The programs of a legacy grid run on one core, one after the other.
    """
    record, count = columns.record, columns.plans.size
    programs = len({each for _, each in record.programs})
    if reorders or programs < 2:
        return np.zeros(count, np.int64), 1
    return program_numbers(record, np.arange(count)), programs


def _times_on(which: Array, found: Sequence[Time], engines: Array) -> tuple[Array, Array]:
    """Return how long each instruction occupies its engine, and how long it takes, on the engines that were chosen."""
    here = np.array([each.engine for each in found])[which] == engines
    occupied, durations, other, other_durations = (
        np.array([getattr(each, name) for each in found])[which]
        for name in ("occupied", "duration", "other_occupied", "other_duration")
    )
    return np.where(here, occupied, other), np.where(here, durations, other_durations)


def _without_meetings(targets: Array, sources: Array, meetings: Array) -> tuple[Array, Array]:
    """Return flow edges in which no two instructions of one meeting wait for each other.

    ``meetings``: the instructions that receive what others send by a collective or sendrecv. What they receive is there
    when its senders could begin, too: each waits for what its senders read.
    """
    both = np.isin(targets, meetings) & np.isin(sources, meetings)
    if not both.any():
        return targets, sources
    rest, needed = np.flatnonzero(~both), list[tuple[int, int]]()
    reads: dict[int, list[int]] = {}
    for target, source in zip(targets[rest].tolist(), sources[rest].tolist(), strict=True):
        reads.setdefault(target, []).append(source)
    for target, source in zip(targets[both].tolist(), sources[both].tolist(), strict=True):
        needed += [(target, each) for each in reads.get(source, []) if each != target]
    more = np.array(needed, np.int64).reshape(-1, 2)
    return np.concatenate((targets[rest], more[:, 0])), np.concatenate((sources[rest], more[:, 1]))


def _edges(
    flow: tuple[Array, Array],
    output: tuple[Array, Array],
    anti: tuple[Array, Array],
    engines: Array,
    knobs: Knobs,
    drained: Array,
    further: tuple[Array, Array],
    meetings: Array,
    renewals: Array,
) -> tuple[Array, Array, Array]:
    """Return all edges with their lags: reads of results first, then what may not be overwritten yet.

    ``drained``: how long each instruction takes after it has let go of its engine. ``further``: edges that are no
    dependences. ``renewals``: instructions that wait for no earlier use of their tile.
    """
    kinds = engines % len(ENGINES)
    flow = _without_meetings(*flow, meetings)
    lags = np.full(flow[0].size, knobs.result_ns)
    # A matmul adds to what another one has left in PSUM without a wait, and a transfer ends with its semaphore.
    lags[kinds[flow[1]] == DMA] = 0.0
    lags[kinds[flow[1]] == LEFT_OUT] = 0.0
    if renewals.size:
        waits = ~np.isin(anti[0], renewals)
        anti = anti[0][waits], anti[1][waits]
    others = [output, anti, further]
    targets = np.concatenate([flow[0], *(each[0] for each in others)])
    sources = np.concatenate([flow[1], *(each[1] for each in others)])
    later = np.where(engines[targets] == engines[sources], 0.0, _SEMAPHORE_NS)
    later[: lags.size] = lags
    matmuls = (kinds[targets] == TENSOR) & (engines[targets] == engines[sources])
    if renewals.size:
        matmuls |= (kinds[sources] == TENSOR) & np.isin(targets, renewals)
    later[matmuls] = -drained[sources[matmuls]]
    return targets, sources, later


def pairs_of(rows: CompressedRows) -> tuple[Array, Array]:
    """Return the instructions and their sources, those of arguments left out."""
    targets = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    found = (rows.sources >= 0) & (rows.sources != targets)
    return targets[found], rows.sources[found]


def is_legacy(run: Run) -> bool:
    """Return whether the kernel is one of the legacy dialect."""
    return run.settings.get("nki_version") in versions_of(LEGACY)


def timeline_of(run: Run, chip: Generation, knobs: Knobs, *, as_written: bool = False) -> Timeline:
    """Return the timeline of a run on a chip; ``as_written``: each load of the kernel counts."""
    # The compiler of the legacy dialect changes the order of instructions.
    operations = [Operations(Columns(record)) for record in run.all_records]
    work, cores, left_out = work_of(
        operations, run.dependences, chip, knobs, reorders=is_legacy(run), as_written=as_written
    )
    return Timeline(work=work, schedule=schedule(work), cores=cores, left_out=left_out, operations=operations)
