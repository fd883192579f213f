"""The cost of a run for a verdict: its time, its traffic beside the least that there can be, and what spills."""

from __future__ import annotations

from typing import Any

from nkitools.precision.runs import Half
from nkitools.rules.finding import NotModelled
from nkitools.verdict.rows import Measured


def measured(run: Any, half: Half, kind: str) -> Measured | str:
    """Return the cost of a run, or a text why it is unknown."""
    if run is None:
        return "the kernel has no run"
    if kind == "pallas":
        return _of_calls(run)
    if kind != "nki":
        return "custom operators have no estimate"
    try:
        found = run.estimate()
    except ValueError as error:
        return str(error)
    names = {record.name_of(each.storage) for record in run.all_records for each in record.outputs}
    ends = [
        each for each in found.traffic if not each.spilled and (each.tensor in names or each.tensor in half.arguments)
    ]
    floor = sum(min(each.nbytes, each.read_bytes) + min(each.nbytes, each.written_bytes) for each in ends)
    return Measured(
        found.latency_us,
        found.lower_us,
        found.upper_us,
        found.roofline.roof,
        found.spilled_bytes,
        found.roofline.hbm_bytes,
        floor,
    )


def _of_calls(run: Any) -> Measured | str:
    """Return the time of all Pallas calls of a function together, or a text why it is unknown."""
    try:
        times = [each.latency_us for each in run.estimate().kernels]
    except (NotModelled, ValueError, AttributeError) as error:
        return str(error)
    if None in times:
        return "the compiler tells no time"
    total = float(sum(times))
    return Measured(total, total, total, "")
