"""The times that changes of a kernel would save: the same work with other times, edges or engines, scheduled again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.timing.schedule import Work, schedule

if TYPE_CHECKING:
    from nkitools.timing.timeline import Timeline


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """A change of some instructions of a run, and the line that it is about."""

    rule: str  # the hint that proposes it
    file: str  # of the author
    line: int  # in that file
    message: str  # what is slow there
    positions: Array  # the instructions, by their positions in the run
    factors: Array  # the time of each afterwards, as a share of its time before
    engines: Array | None = None  # the engine of each afterwards, where that changes
    dropped: Array | None = None  # whether each edge of the work goes, where some do

    def bound_ns(self, timeline: Timeline) -> float:
        """Return a bound of the time that the change can save: no run is shorter than the work of one engine."""
        work = self._changed(timeline.work)
        bound = timeline.span_ns - float(np.bincount(work.engines, work.occupied).max())
        if self.engines is not None or self.dropped is not None:
            return bound
        return min(bound, float((timeline.work.durations[self.positions] * (1 - self.factors)).sum()))

    def saved_ns(self, timeline: Timeline) -> float:
        """Return how much shorter the schedule gets."""
        return timeline.span_ns - float(schedule(self._changed(timeline.work)).ends.max())

    def _changed(self, work: Work) -> Work:
        occupied, durations, engines = work.occupied.copy(), work.durations.copy(), work.engines
        shared = np.zeros(engines.size) if work.shared is None else work.shared.copy()
        for each in (occupied, durations, shared):
            each[self.positions] *= self.factors
        if self.engines is not None:
            engines = engines.copy()
            engines[self.positions] = self.engines
        work = replace(work, occupied=occupied, durations=durations, shared=shared, engines=engines)
        if self.dropped is not None:
            kept = ~self.dropped
            work = replace(work, targets=work.targets[kept], sources=work.sources[kept], lags=work.lags[kept])
        return work


def covered_ns(starts: Array, ends: Array) -> float:
    """Return how long at least one of some intervals lasts."""
    if not starts.size:
        return 0.0
    order = np.argsort(starts, kind="stable")
    begins, latest = starts[order], np.maximum.accumulate(ends[order])
    gaps = begins[1:] - latest[:-1]
    return float(latest[-1] - begins[0] - gaps[gaps > 0].sum())
