"""A run as a trace that Perfetto (ui.perfetto.dev) opens: estimated time, or the order of its instructions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nkitools.record.run import must_be_run
from nkitools.record.whole_file import write_whole
from nkitools.report.perfetto_order import order_trace
from nkitools.report.perfetto_time import time_trace

if TYPE_CHECKING:
    from nkitools.record.run import Run


def save_timeline(run: Run, path: str | os.PathLike[str], *, order: bool = False) -> None:
    """Write the trace of a run to a file for Perfetto (ui.perfetto.dev); the file is replaced if it exists.

    Instructions have the times of `Run.estimate`. ``order``: one step for each instruction, in the order of simulation,
    in place of estimated times. TypeError if ``run`` is no run; ValueError if it has no instructions, as nkitools has
    not simulated it; ModuleNotFoundError without the package ``perfetto``; OSError if the file cannot be written.
    """
    write_whole(path, timeline(run, order=order))


def timeline(run: Run, *, order: bool = False) -> bytes:
    """Return the trace of a run, which may come from a file.

    Instructions have the times of `Run.estimate`: cores are processes, engines and DMA queues are tracks. ``order``:
    one step for each instruction instead, in the order of simulation, inside the turns of loops. ValueError if the run
    has no instructions (it ran elsewhere than in nkitools' simulator); ModuleNotFoundError, with the package to
    install, without ``perfetto``.
    """
    must_be_run(run, "a timeline")
    if not any(record.count for record in run.all_records):
        raise ValueError(f"the run of {run.kernel} on {run.target} has no instructions that a timeline could show")
    return order_trace(run) if order else time_trace(run)
