"""The writes of a run that differ from those of another run, for a page that shows the two side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule
from nkitools.record.run import Run
from nkitools.record.watch.written import Written
from nkitools.report.first_difference import keyed, left_out


class Against(NamedTuple):
    """The run that another one is compared with; its name is for the reader, a file for example."""

    run: Run
    name: str
    rule: Rule


class WriteDifference(NamedTuple):
    """A write that differs: the same write in the other run, the number of differing elements, the largest and the
    first.

    ``distance``: the absolute differences, 0 for elements that agree within the tolerance.
    """

    write: Written
    other: Written
    elements: int
    worst: int
    first: int
    distance: Array


class Compared(NamedTuple):
    """The outcome for all writes: those that differ, and the number of those that cannot be compared."""

    different: list[WriteDifference]
    unknown: int
    alone: int  # writes that the other run lacks


def compared_writes(run: Run, against: Against) -> Compared:
    """Return the differences of the writes of a run from those of another: by tensor, program and counters."""
    there = dict(keyed(against.run.writes))
    found, unknown, alone = list[WriteDifference](), 0, 0
    for key, write in keyed(run.writes):
        other = there.get(key)
        if other is None or write.shape != other.shape:
            alone += 1
        elif write.value is None or other.value is None:
            unknown += 1
        else:
            found += _differences(write, other, against.rule)
    return Compared(found, unknown, alone)


def _differences(write: Written, other: Written, rule: Rule) -> Iterator[WriteDifference]:
    """Yield the difference of two writes of one shape, if they differ."""
    assert write.value is not None
    assert other.value is not None
    written = ~(left_out(write) | left_out(other))
    found = compared(other.value, write.value, rule, dtypes=(other.dtype, write.dtype), looked_at=written)
    if not found.count:
        return
    with np.errstate(all="ignore"):
        distance = np.where(found.wrong, found.distance, 0.0).astype(np.float32)
    worst = int(np.ravel_multi_index(found.worst, found.wrong.shape))
    yield WriteDifference(write, other, found.count, worst, int(np.argmax(found.wrong)), distance)
