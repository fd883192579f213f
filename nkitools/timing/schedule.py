"""List scheduling of instructions on engines: arrays in, the start and the end of each instruction out.

At every step the instruction that can start the earliest is started, of several the first in the order of issue. An
engine without a window starts its instructions in their order; with a window it may start a later one while earlier
ones wait for their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from nkitools.chip.numerics import Array

NO_CAUSE = -1


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The clock of an engine that is slow until it has been busy: by windows of time.

    A window's busy share decides the clock of the next one. An instruction that uses a part of the rows counts as so
    much of its time.
    """

    window_ns: float
    warms: float  # the share from which on a slow clock becomes fast
    stays: float  # the share from which on a fast clock stays so
    cold: float  # how many times as long an instruction takes by the slow clock


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """The instructions to schedule. All times are nanoseconds.

    Edge e lets instruction ``targets[e]`` start ``lags[e]`` after the end of ``sources[e]``.
    """

    engines: Array  # the engine of each instruction, by number
    occupied: Array  # how long each instruction occupies its engine
    durations: Array  # from its start to its end, at least as long
    targets: Array  # of the edges
    sources: Array  # of the edges
    lags: Array  # of the edges
    in_order: Sequence[bool]  # for each engine whether it starts its instructions in their order
    queues: Sequence[int]  # for each engine how many instructions it holds that have started and not ended
    shared: Array | None = None  # how long each occupies the resource that some engines share, 0 for not at all
    pools: Sequence[int] = ()  # for each engine the number of the resource that it shares with others
    order: Array | None = None  # the place of each among those that an engine may start first; None for their order
    rows: Array | None = None  # the share of the rows of an engine with a clock that each uses, 0 on others
    clock: Clock | None = None  # of the instructions with ``rows``
    waits: Array | None = None  # how much of the time of each is not by the clock: it waits for semaphores


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """The times of each instruction in nanoseconds, and why it starts no earlier."""

    starts: Array
    begins: Array  # of its work: later than the start where it waits for a resource that engines share
    occupied: Array  # how long that lasts
    ends: Array
    causes: Array  # the instruction that it waited for, `NO_CAUSE` for none
    waits_for_engine: Array  # whether it waited for its engine, else for an operand


def schedule(work: Work) -> Schedule:
    """Return the schedule of some work; ValueError where instructions wait for each other."""
    # What has no instructions is not asked at every step.
    used, engines = np.unique(work.engines, return_inverse=True)
    numbers = used.tolist()
    compact = replace(
        work,
        engines=engines.reshape(-1),
        in_order=[work.in_order[number] for number in numbers],
        queues=[work.queues[number] for number in numbers],
        pools=[work.pools[number] for number in numbers] if work.pools else (),
    )
    return _Scheduler(compact).run()


class _Scheduler:
    """The state of a schedule that is being made."""

    def __init__(self, work: Work) -> None:
        count = work.engines.size
        self.count = count
        self.work = work
        order = np.argsort(work.sources, kind="stable")
        bounds = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(work.sources, minlength=count), out=bounds[1:])
        self.bounds = bounds.tolist()
        self.targets, self.lags = work.targets[order].tolist(), work.lags[order].tolist()
        self.missing = np.bincount(work.targets, minlength=count).tolist()
        self.engines = work.engines.tolist()
        self.ready = [0.0] * count
        self.causes = [NO_CAUSE] * count
        places = np.arange(count) if work.order is None else work.order
        ordered = np.argsort(places)
        self.places: list[int] = places.tolist()
        self.of_places: list[int] = ordered.tolist()
        self.pending: list[list[tuple[float, int]]] = [[] for _ in work.in_order]  # by the time they are ready
        self.waiting: list[list[int]] = [[] for _ in work.in_order]  # ready now, by their order
        # What an engine in order starts next, and how many it has started.
        self.lines: list[list[int]] = [
            ordered[work.engines[ordered] == engine].tolist() for engine in range(len(work.in_order))
        ]
        self.heads = [0] * len(work.in_order)
        self.free = [0.0] * len(work.in_order)
        self.starts, self.ends = [0.0] * count, [0.0] * count
        self.by_engine = [False] * count
        nothing = np.zeros(count)
        self.shared = nothing if work.shared is None else work.shared
        self.rows = nothing if work.rows is None or work.clock is None else work.rows
        self.lasting = np.where(self.shared > 0, self.shared, work.occupied).tolist()
        self.later: dict[int, float] = {}  # when transfers begin that wait for what they share

    def run(self) -> Schedule:
        """Return the whole schedule."""
        self._start_all(self._released())
        begins = np.array(self.starts)
        begins[list(self.later)] = list(self.later.values())
        return Schedule(
            starts=np.array(self.starts),
            begins=begins,
            occupied=np.array(self.lasting),
            ends=np.array(self.ends),
            causes=np.array(self.causes, np.int64),
            waits_for_engine=np.array(self.by_engine, np.bool_),
        )

    def _released(self) -> list[float]:
        """Return when each engine can start its first instruction, as far as is clear at the beginning."""
        nexts = [_NEVER] * len(self.lines)
        for position in [at for at, missing in enumerate(self.missing) if not missing]:
            engine = self.engines[position]
            if not self.work.in_order[engine]:
                heappush(self.pending[engine], (0.0, position))
            elif self.lines[engine][0] != position:
                continue
            nexts[engine] = 0.0
        return nexts

    def _start_all(self, nexts: list[float]) -> None:
        """Start one instruction after the other, in a loop whose steps take no longer than a call.

        ``nexts``: when each engine can start an instruction next, as far as is clear.
        """
        ready, causes, missing, engines = self.ready, self.causes, self.missing, self.engines
        bounds, targets, lags, lines, heads = self.bounds, self.targets, self.lags, self.lines, self.heads
        in_order, pending, free, starts, ends = self.work.in_order, self.pending, self.free, self.starts, self.ends
        places, of_places, waiting = self.places, self.of_places, self.waiting
        occupied, durations = self.work.occupied.tolist(), self.work.durations.tolist()
        latest, by_engine = [NO_CAUSE] * len(in_order), self.by_engine
        has_queue = np.array(self.work.queues, np.bool_)[self.work.engines]
        beside, is_beside = self._beside(), ((self.shared > 0) | (self.rows > 0) | has_queue).tolist()
        for _ in range(self.count):
            start = min(nexts)
            if start == _NEVER:
                raise ValueError("instructions wait for each other")
            engine = nexts.index(start)
            late, now, line, head = pending[engine], waiting[engine], lines[engine], heads[engine]
            if in_order[engine]:
                position = line[head]
                heads[engine] = head = head + 1
            else:  # of those that are ready the first in the order
                while late and late[0][0] <= start:
                    heappush(now, places[heappop(late)[1]])
                position = of_places[heappop(now)]
            if ready[position] < start:
                causes[position], by_engine[position] = latest[engine], True
            starts[position] = start
            ends[position] = end = start + durations[position]
            free[engine] = start + occupied[position]
            latest[engine] = position
            if is_beside[position]:
                end = beside(position, engine)
            for edge in range(bounds[position], bounds[position + 1]):
                target, time = targets[edge], end + lags[edge]
                if time > ready[target]:
                    ready[target], causes[target] = time, position
                missing[target] = left = missing[target] - 1
                if left:
                    continue
                other, time = engines[target], ready[target]
                if not in_order[other]:
                    heappush(pending[other], (time, target))
                elif lines[other][heads[other]] != target:
                    continue
                if time < free[other]:
                    time = free[other]
                if time < nexts[other]:  # that of this engine is found below
                    nexts[other] = time
            time, soonest = _NEVER, free[engine]
            if now:
                time = soonest
            elif late:
                time = late[0][0]
            elif in_order[engine] and head < len(line) and not missing[line[head]]:
                time = ready[line[head]]
            nexts[engine] = time if time > soonest else soonest

    def _beside(self) -> Callable[[int, int], float]:
        """Return what says when an instruction ends that starts now, by the state that it shares with others.

        Beyond the order on their engine these are transfers, queues and the clock.
        """
        work, starts, ends, free, lasting, later = (
            self.work,
            self.starts,
            self.ends,
            self.free,
            self.lasting,
            self.later,
        )
        shared, rows, pools, queues = self.shared.tolist(), self.rows.tolist(), work.pools, work.queues
        waits = (np.zeros(self.count) if work.waits is None else work.waits).tolist()
        until = [0.0] * (max(pools, default=0) + 1)
        windows = [_Windows(work.clock) for _ in until] if work.clock else []
        flying: list[list[float]] = [[] for _ in work.in_order]  # when what has started ends

        def started(position: int, engine: int) -> float:
            end = ends[position]
            if shared[position]:
                pool, start = pools[engine], starts[position]
                begin = until[pool]
                if begin > start:
                    later[position] = begin
                    ends[position] = end = end + (begin - start)
                else:
                    begin = start
                until[pool] = begin + shared[position]
            elif rows[position]:
                busy = lasting[position] - waits[position]
                more = windows[pools[engine]].slower(starts[position], busy, rows[position])
                if more:
                    lasting[position] += more
                    free[engine] += more
                    ends[position] = end = end + more
            if queues[engine]:
                held = flying[engine]
                heappush(held, end)
                if len(held) >= queues[engine]:
                    free[engine] = max(free[engine], heappop(held))
            return end

        return started


class _Windows:
    """The state of a clock: its window, how long that was busy, and how much longer an instruction takes now."""

    __slots__ = ("_busy", "_clock", "_ends", "_is_warm")

    def __init__(self, clock: Clock) -> None:
        self._clock, self._ends, self._busy, self._is_warm = clock, clock.window_ns, 0.0, False

    def slower(self, start: float, busy: float, rows: float) -> float:
        """Return how much longer an instruction takes that starts now, which starts no earlier than the last one."""
        clock = self._clock
        if start >= self._ends:
            over, window = start - self._ends, clock.window_ns
            self._is_warm = over < window and self._busy >= (clock.stays if self._is_warm else clock.warms) * window
            self._ends += (over // window + 1) * window
            self._busy = 0.0
        more = 0.0 if self._is_warm else busy * (clock.cold - 1)
        self._busy += (busy + more) * rows
        return more


_NEVER = float("inf")
