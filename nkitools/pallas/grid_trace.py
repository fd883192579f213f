"""The trace of a watched Pallas call, for the page of its run: blocks, accesses, DMAs and semaphores by grid point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nkitools.pallas import write_shadow
from nkitools.pallas.calls import Call
from nkitools.pallas.jax_types import BufferKey, Dma, Ranges
from nkitools.pallas.observed_grid import WatchedGrid
from nkitools.pallas.source_places import NOWHERE, Place
from nkitools.pallas.write_shadow import Shadow
from nkitools.record.trace import Event, Touch, Trace, TracedBuffer

_FAST = {"window": "vmem", "scratch": "vmem", "scoped": "vmem", "scalar": "smem"}


class GridTrace:
    """Keeps the events of one Pallas call; ``budget``: the bytes of values that may be kept.

    The pipeline and DMAs read a block and then write it: the read is kept until the write.
    """

    def __init__(self, grid: WatchedGrid, budget: int) -> None:
        self.trace = Trace("grid", "", points=grid.points, budget=budget)
        self._grid = grid
        self._several = False  # devices
        self._numbers: dict[Any, int] = {}  # of buffers
        self._read: dict[Any, Touch] = {}  # by device and core, or by the DMA
        self._begun: dict[int, int] = {}  # by the DMA: the event that started it

    def begin(self, call: Call, shadows: dict[Any, Shadow], memory: Any) -> None:
        """Note the call and its buffers, once they have names."""
        trace = self.trace
        trace.name, trace.file, trace.line = call.name, call.kernel_place.file, call.kernel_place.line
        trace.grid, trace.parallel = tuple(size or 0 for size in call.grid), call.parallel
        self._several = memory.num_cores > memory.num_cores_per_device
        if self._several:  # whose points look alike
            trace.points = [(0,) * len(trace.grid)] if math.prod(trace.grid) == 1 else []
        for key, shadow in shadows.items():
            number = self.buffer(key, shadow, memory)
            if shadow.kind in ("input", "scalar"):
                trace.give(number, np.asarray(memory.mem[key].content))

    def buffer(self, key: BufferKey, shadow: Shadow, memory: Any) -> int:
        """Return the number of a buffer."""
        known = self._numbers.get(key)
        if known is not None:
            return known
        content = memory.mem[key].content
        operand, kind = shadow.operand, shadow.kind
        of = -1
        if kind == "window":
            others = enumerate(self.trace.buffers)
            alike = ("output",) if shadow.is_output else ("input", "output")
            of = next((at for at, each in others if each.name == shadow.name and each.kind in alike), -1)
        where = (operand.memory if operand is not None and kind == "window" else "") or _FAST.get(kind, "hbm")
        block = () if operand is None or operand.whole else operand.block_sizes
        found = TracedBuffer(
            shadow.name, kind, where.upper(), content.dtype.name, content.shape, block, of, int(key[2])
        )
        self._numbers[key] = len(self.trace.buffers)
        self.trace.buffers.append(found)
        return self._numbers[key]

    def read(self, who: Any, touch: Touch) -> None:
        """Keep the source of a DMA or of the pipeline until it is written."""
        self._read[who] = touch

    def moved(self, who: Any) -> tuple[Touch, ...]:
        """Return the source of a DMA or of the pipeline that writes now; () if unknown."""
        touch = self._read.pop(who, None)
        return () if touch is None else (touch,)

    def touch(self, number: int, ranges: Ranges) -> Touch:
        """Return the part of an access that lies inside the buffer."""
        shape = self.trace.buffers[number].shape
        spans = list(write_shadow.spans(ranges, shape))
        bounds = [
            (max(0, start), max(0, min(stop, size))) for (start, stop, _, _), size in zip(spans, shape, strict=True)
        ]
        starts, stops = tuple(first for first, _ in bounds), tuple(last for _, last in bounds)
        return Touch(number, starts, stops, tuple(step for _, _, step, _ in spans))

    def add(
        self,
        kind: str,
        engine: str,
        who: tuple[int, int],
        place: Place = NOWHERE,
        reads: tuple[Touch, ...] = (),
        writes: tuple[Touch, ...] = (),
        value: Any = None,
        begun: int = -1,
        note: str = "",
    ) -> int:
        """Add an event of a device and its core; with several devices it has no point of the grid."""
        device, core = who
        step = len(self.trace.points) - 1 if self._several else self._grid.step(core)
        event = Event(
            *(kind, engine, max(step, -1), device, core, place.file if place.line else "", place.line),
            *(reads, writes, None if value is None else np.array(value), begun, note),
        )
        return self.trace.add(event)

    def start(self, dma: Dma, place: Place, target: str) -> None:
        """Note the start of a DMA."""
        who = int(dma.src_device_id), int(dma.src_local_core_id)
        self._begun[id(dma)] = self.add("DMA start", "dma", who, place, note=f"to {target}")

    def begun(self, dma: Dma) -> int:
        """Return the event that started a DMA."""
        return self._begun.get(id(dma), -1)
