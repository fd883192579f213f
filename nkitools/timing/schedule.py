"""List scheduling of instructions on engines: arrays in, the start and the end of each instruction out.

At every step the instruction that can start the earliest is started, of several the first in the order of issue. An
engine without a window starts its instructions in their order; with a window it may start a later one while earlier
ones wait for their operands.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        self.targets = work.targets[order].tolist()
        self.lags = work.lags[order].tolist()
        self.missing = np.bincount(work.targets, minlength=count).tolist()
        self.engines = work.engines.tolist()
        self.ready = [0.0] * count
        self.causes = [NO_CAUSE] * count
        self.pending: list[list[tuple[float, int]]] = [[] for _ in work.in_order]  # by the time they are ready
        self.waiting: list[list[int]] = [[] for _ in work.in_order]  # ready now, by their order
        # What an engine in order starts next, and how many it has started.
        self.lines = [np.flatnonzero(work.engines == engine).tolist() for engine in range(len(work.in_order))]
        self.heads = [0] * len(work.in_order)

    def run(self) -> Schedule:
        """Return the whole schedule."""
        for position in [at for at, missing in enumerate(self.missing) if not missing]:
            self._release(position)
        return self._started()

    def _release(self, position: int) -> None:
        engine = self.engines[position]
        if not self.work.in_order[engine]:
            heappush(self.pending[engine], (self.ready[position], position))

    def _started(self) -> Schedule:  # one loop over all instructions: what it calls would cost as much again
        work, ready, causes, missing = self.work, self.ready, self.causes, self.missing
        bounds, targets, lags, engines = self.bounds, self.targets, self.lags, self.engines
        occupied, durations = work.occupied.tolist(), work.durations.tolist()
        shared = [0.0] * self.count if work.shared is None else work.shared.tolist()
        pools, until = work.pools, [0.0] * (max(work.pools, default=0) + 1)
        order = np.arange(self.count) if work.order is None else work.order
        places, of_places = order.tolist(), np.argsort(order).tolist()
        rows = [0.0] * self.count if work.rows is None or work.clock is None else work.rows.tolist()
        clocks = [] if work.clock is None else [_Windows(work.clock) for _ in until]
        in_order, queues, pending, waiting = work.in_order, work.queues, self.pending, self.waiting
        lines, heads = self.lines, self.heads
        starts, begins, ends = [0.0] * self.count, [0.0] * self.count, [0.0] * self.count
        lasting = [moving or busy for moving, busy in zip(shared, occupied, strict=True)]
        by_engine = [False] * self.count
        numbers = range(len(in_order))
        free = [0.0] * len(in_order)
        latest = [NO_CAUSE] * len(in_order)
        flying: list[list[tuple[float, int]]] = [[] for _ in in_order]
        nexts = [self._next(engine, 0.0) for engine in numbers]
        for _ in range(self.count):
            start = min(nexts)
            if start == _NEVER:
                raise ValueError("instructions wait for each other")
            engine = nexts.index(start)
            if in_order[engine]:
                position = lines[engine][heads[engine]]
                heads[engine] += 1
            else:
                late, now = pending[engine], waiting[engine]
                while late and late[0][0] <= start:
                    heappush(now, places[heappop(late)[1]])
                position = of_places[heappop(now)]
            if ready[position] < start:
                causes[position], by_engine[position] = latest[engine], True
            starts[position] = start
            end = start + durations[position]
            begins[position] = start
            if shared[position]:
                pool = pools[engine]
                if until[pool] > start:
                    begins[position] = until[pool]
                    end += until[pool] - start
                until[pool] = begins[position] + shared[position]
            busy = occupied[position]
            if rows[position]:
                slower = clocks[pools[engine]].slower(start, busy, rows[position])
                busy += slower
                end += slower
                lasting[position] = busy
            ends[position] = end
            latest[engine] = position
            free[engine] = start + busy
            if queues[engine]:
                held = flying[engine]
                heappush(held, (end, position))
                if len(held) >= queues[engine]:
                    first, _ = heappop(held)
                    if first > free[engine]:
                        free[engine] = first
            first, last = bounds[position], bounds[position + 1]
            for target, lag in zip(targets[first:last], lags[first:last], strict=True):
                time = end + lag
                if time > ready[target]:
                    ready[target], causes[target] = time, position
                missing[target] -= 1
                if not missing[target]:
                    other, time = engines[target], ready[target]
                    if not in_order[other]:
                        heappush(pending[other], (time, target))
                    elif lines[other][heads[other]] != target:
                        continue
                    if time < free[other]:
                        time = free[other]
                    if time < nexts[other]:  # that of this engine is found below
                        nexts[other] = time
            if in_order[engine]:  # as `_next` says, without a call
                line, head = lines[engine], heads[engine]
                if head == len(line) or missing[line[head]]:
                    nexts[engine] = _NEVER
                else:
                    time, now_free = ready[line[head]], free[engine]
                    nexts[engine] = time if time > now_free else now_free
            else:
                nexts[engine] = self._next(engine, free[engine])
        return Schedule(
            starts=np.array(starts),
            begins=np.array(begins),
            occupied=np.array(lasting),
            ends=np.array(ends),
            causes=np.array(causes, np.int64),
            waits_for_engine=np.array(by_engine, np.bool_),
        )

    def _next(self, engine: int, free: float) -> float:
        """Return when an engine can start an instruction next, as far as is clear now."""
        if self.work.in_order[engine]:
            line, head = self.lines[engine], self.heads[engine]
            if head == len(line) or self.missing[line[head]]:
                return _NEVER
            return max(free, self.ready[line[head]])
        if self.waiting[engine]:
            return free
        pending = self.pending[engine]
        return max(free, pending[0][0]) if pending else _NEVER


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
