"""The estimated time of a run for the page: time and engine of instructions, and the cost of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import generation_of
from nkitools.record.columns import Columns
from nkitools.record.run import Run
from nkitools.timing.critical_path import path_of
from nkitools.timing.durations import DMA, ENGINES
from nkitools.timing.estimate import estimated
from nkitools.timing.timeline import Timeline

MOST = 150_000  # instructions of a run whose time a page has
_MOST_ADVISED = 20_000  # of a run for whose hints what-if schedules are made

Columned = tuple[dict[str, Any], dict[str, Array]]


def time_of(run: Run, columns: Sequence[Columns], bases: Sequence[int], places: Array) -> Columned:
    """Return the page's table and columns of the time of a run; empty if the run has no instructions.

    For a check of Pallas calls the table has ``kernels``, the estimates in its settings. For long runs it only says
    that their time is left out. ``places``: the page's place of each instruction.
    """
    count = sum(each.record.count for each in columns)
    if not count:
        kernels = run.settings.get("estimates")
        return ({"kernels": kernels} if kernels else {}), {}
    if count > MOST:
        return {"left_out": MOST}, {}
    found, timeline = estimated(run, advises=count <= _MOST_ADVISED)
    starts, ends = timeline.starts_ns, np.where(timeline.kinds == DMA, timeline.ends_ns, timeline.freed_ns)
    table = {
        **{name: value for name, value in asdict(found).items() if name not in ("kernel", "chip", "instructions")},
        "lanes": ENGINES,
        "span_ns": timeline.span_ns,
        "advised": count <= _MOST_ADVISED,
        **_roofs(run.chip, timeline.cores),
    }
    times = {
        "time.start": starts,
        "time.duration": ends - starts,
        "time.lane": timeline.lanes,
        "time.path": np.array(sorted(path_of(timeline.schedule)), np.int64),
    }
    return table, {**times, **_lines(run, bases, places, timeline)}


def _roofs(chip: str, cores: int) -> dict[str, float]:
    known = generation_of(chip)
    return {
        "peak_flops": 2 * known.partitions * known.stationary_fmax * known.clocks.tensor * 1e9 * cores,
        "bytes_per_second": known.hbm_bytes_per_second * cores,
    }


def _lines(run: Run, bases: Sequence[int], places: Array, timeline: Timeline) -> dict[str, Array]:
    """Return by place of the author's: nanoseconds of its engines, bytes from and to HBM, reloads."""
    size = int(places.max()) + 1
    moved = np.concatenate([_moved(each) for each in timeline.columns])
    again = np.zeros(places.size, np.int64)
    for each, base in zip(timeline.operations, bases, strict=True):
        again[base + each.reloads(run.dependences.flow, base)] = 1
    busy = np.bincount(places, timeline.schedule.occupied, minlength=size)
    return {
        "line.busy": np.rint(busy).astype(np.int64),
        "line.moved": np.bincount(places, moved, minlength=size).astype(np.int64),
        "line.reloads": np.bincount(places, again, minlength=size).astype(np.int64),
    }


def _moved(columns: Columns) -> Array:
    """Return the number of bytes that each instruction reads from and writes to HBM."""
    nbytes = columns.of_layouts(lambda layout: 0 if layout.on_chip else layout.nbytes)
    named = columns.of_plans(lambda plan: [plan.names_only for _ in plan.written])
    nbytes[named] = 0
    return np.bincount(columns.positions, nbytes, minlength=columns.record.count)
