"""The critical path of a timeline: the instructions that waited for each other without a gap, by the author's lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nkitools.record.columns import Columns
from nkitools.record.time_estimate import PathLine
from nkitools.timing.durations import ENGINES

if TYPE_CHECKING:
    from nkitools.record.record import Record
    from nkitools.timing.schedule import Schedule
    from nkitools.timing.timeline import Timeline


@dataclass
class _Stretch:
    """The time of one line on the path."""

    ns: float = 0.0
    waits: dict[str, float] | None = None


def path_of(schedule: Schedule) -> list[int]:
    """Return the positions of the instructions on the critical path, the last one first."""
    path = [int(schedule.ends.argmax())]
    while schedule.causes[path[-1]] >= 0:
        path.append(int(schedule.causes[path[-1]]))
    return path


def critical_path(timeline: Timeline, records: Sequence[Record], latency_us: float) -> tuple[PathLine, ...]:
    """Return the lines of the critical path, the largest share first."""
    schedule = timeline.schedule
    lines = _Lines(timeline, records)
    path = path_of(schedule)
    stretches: dict[tuple[str, int, str, str], _Stretch] = {}
    before = 0.0
    waited_for = ""
    for position in reversed(path):
        key = lines[position]
        stretch = stretches.setdefault(key, _Stretch(waits={}))
        end = float(schedule.ends[position])
        stretch.ns += max(0.0, end - before)
        if waited_for and stretch.waits is not None:
            engine = bool(schedule.waits_for_engine[position])
            why = f"its engine, with {waited_for}" if engine else waited_for
            stretch.waits[why] = stretch.waits.get(why, 0.0) + max(0.0, end - before)
        before, waited_for = max(before, end), f"{key[2]} of line {key[1]}"
    found = [
        PathLine(
            file=file,
            line=line,
            instruction=instruction,
            engine=engine,
            us=stretch.ns / 1e3,
            share=stretch.ns / 1e3 / latency_us,
            waits_for=max(stretch.waits, key=stretch.waits.__getitem__) if stretch.waits else "",
        )
        for (file, line, instruction, engine), stretch in stretches.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.us))


class _Lines:
    """The file, the line, the name and the engine of each instruction of a run."""

    def __init__(self, timeline: Timeline, records: Sequence[Record]) -> None:
        columns = [Columns(record) for record in records]
        self._records = records
        self._record = np.repeat(np.arange(len(records)), [record.count for record in records]).tolist()
        self._sites = np.concatenate([each.sites for each in columns]).tolist()
        self._plans = np.concatenate([each.plans for each in columns]).tolist()
        self._engines = (timeline.work.engines % len(ENGINES)).tolist()

    def __getitem__(self, position: int) -> tuple[str, int, str, str]:
        record = self._records[self._record[position]]
        site, plan = record.sites[self._sites[position]], record.plans[self._plans[position]].plan
        return site.file, site.line, plan.name, ENGINES[self._engines[position]]
