"""Own kernels of one or two instructions, whose published times are parts of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import nkitools

nkitools.install_stand_in()

import nki  # noqa: E402 the stand-in comes first
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

from nkitools.facts.laws import profiled  # noqa: E402
from nkitools.record.run import Run  # noqa: E402
from nkitools.timing.knobs import Knobs  # noqa: E402
from nkitools.timing.timeline import Timeline  # noqa: E402


@nki.jit
def two_activations(data: Any) -> Any:
    """Compute exp(exp(data)) of one element in each partition."""
    tile = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)
    first = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)
    second = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)
    out = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=data)
    nisa.activation(dst=first, op=nl.exp, data=tile)
    nisa.activation(dst=second, op=nl.exp, data=first)
    nisa.dma_copy(dst=out, src=second)
    return out


@nki.jit
def two_copies(data: Any) -> Any:
    """Copy data to a tile, and to another one."""
    out = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.shared_hbm)
    for _ in range(2):
        tile = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=data)
    nisa.dma_copy(dst=out, src=tile)
    return out


def _between(timeline: Timeline, name: int) -> float:
    starts = np.sort(timeline.schedule.starts[timeline.work.engines == name])
    return float(starts[1] - starts[0]) / 1e3


def _dependent_activation(timeline: Timeline, knobs: Knobs) -> float:
    """Return the microseconds between two activations, the second of the first one's result."""
    return _between(timeline, 2)


def _one_transfer(timeline: Timeline, knobs: Knobs) -> float:
    """Return the microseconds of a transfer, without its issue and the wait for its semaphore."""
    issue = profiled("gen3", "DMA", "DMA_DIRECT2D", "sync issue")
    return (float(timeline.work.durations[0]) - (0.0 if issue is None else issue.fixed_ns) - knobs.dma_latency_ns) / 1e3


def _issue(timeline: Timeline, knobs: Knobs) -> float:
    """Return the microseconds between two small transfers."""
    return _between(timeline, 5)


def _of(kernel: Any, data: Any, chip: str) -> Callable[[], Run]:
    return lambda: nkitools.simulate(kernel, data, chip=chip)


SINGLE: dict[str, tuple[Callable[[], Run], Callable[[Timeline, Knobs], float]]] = {
    "docs/dma_32KiB_1engine": (_of(two_copies, np.zeros((4, 4096), ml_dtypes.bfloat16), "trn2"), _one_transfer),
    "docs/act_dependent_ii": (_of(two_activations, np.zeros((128, 1), np.float32), "trn1"), _dependent_activation),
    "docs/hwdge_issue": (_of(two_copies, np.zeros((1, 1), np.float32), "trn2"), _issue),
}
"""The runs of these kernels, and the part of their time that is published."""
