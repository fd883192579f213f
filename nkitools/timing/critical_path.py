"""The critical path of a timeline: the instructions that waited for each other without a gap, by the author's lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.time_estimate import PathLine
from nkitools.timing.durations import ENGINES

if TYPE_CHECKING:
    from nkitools.timing.schedule import Schedule
    from nkitools.timing.timeline import Timeline


def path_of(schedule: Schedule) -> list[int]:
    """Return the positions of the instructions on the critical path, the last one first."""
    path, causes = [int(schedule.ends.argmax())], schedule.causes.tolist()
    while causes[path[-1]] >= 0:
        path.append(causes[path[-1]])
    return path


def critical_path(timeline: Timeline, latency_us: float) -> tuple[PathLine, ...]:
    """Return the lines of the critical path, the largest share first."""
    schedule = timeline.schedule
    path = np.array(path_of(schedule)[::-1], np.int64)
    lines, numbers = _lines_of(path, timeline)
    ends = np.maximum.accumulate(schedule.ends[path])
    spans = np.diff(ends, prepend=0.0)
    of_lines = np.bincount(numbers, spans, minlength=len(lines)) / 1e3
    waits = _longest_waits(numbers, schedule.waits_for_engine[path], spans)
    found = []
    for number, (file, line, instruction, engine) in enumerate(lines):
        why = ""
        if number in waits:
            before, by_engine = waits[number]
            why = f"{'its engine, with ' if by_engine else ''}{lines[before][2]} of line {lines[before][1]}"
        us = float(of_lines[number])
        found.append(
            PathLine(
                file=file,
                line=line,
                instruction=instruction,
                engine=engine,
                us=us,
                share=us / latency_us,
                waits_for=why,
            )
        )
    return tuple(sorted(found, key=lambda each: (-round(each.us, 6), each.file, each.line, each.instruction)))


def _lines_of(path: Array, timeline: Timeline) -> tuple[list[tuple[str, int, str, str]], Array]:
    """Return the lines of some instructions in the order of their first ones, and the number of each one's line.

    A line is its file, its number, the name of the instruction and the engine.
    """
    columns = timeline.columns
    records = [each.record for each in columns]
    words = np.stack(
        (
            np.repeat(np.arange(len(records)), [record.count for record in records])[path],
            np.concatenate([each.sites for each in columns])[path],
            np.concatenate([each.plans for each in columns])[path],
            timeline.kinds[path],
        )
    )
    numbers = np.zeros(path.size, np.int64)
    for each in words:  # one number for each combination so far
        numbers = np.unique(numbers * (int(each.max()) + 1) + each, return_inverse=True)[1].reshape(-1)
    _, firsts = np.unique(numbers, return_index=True)
    lines: dict[tuple[str, int, str, str], int] = {}
    of_numbers = np.zeros(firsts.size, np.int64)
    for number in np.argsort(firsts).tolist():
        record, site, plan, engine = words[:, firsts[number]].tolist()
        place = records[record].sites[site]
        key = place.file, place.line, records[record].plans[plan].plan.name, ENGINES[engine]
        of_numbers[number] = lines.setdefault(key, len(lines))
    return list(lines), of_numbers[numbers]


def _longest_waits(numbers: Array, by_engine: Array, spans: Array) -> dict[int, tuple[int, bool]]:
    """Return for each line which line it waited for the longest, and whether for its engine there."""
    count = int(numbers.max()) + 1
    codes = (numbers[1:] * count + numbers[:-1]) * 2 + by_engine[1:]
    pairs, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.bincount(which.reshape(-1), spans[1:], minlength=pairs.size)
    found: dict[int, tuple[int, bool]] = {}
    for at in np.lexsort((firsts, -sums)).tolist():  # the longest first, of equal ones the earlier one
        line, why = divmod(int(pairs[at]), 2 * count)
        found.setdefault(line, (why // 2, bool(why % 2)))
    return found
