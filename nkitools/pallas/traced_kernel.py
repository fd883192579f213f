"""The part of a watched Pallas call that keeps its trace: reads, writes, copies and semaphores, as they happen."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Any

from nkitools.pallas import source_places, write_shadow
from nkitools.pallas.calls import Call
from nkitools.pallas.grid_trace import GridTrace
from nkitools.pallas.jax_types import BufferKey, Memory, Ranges, SourceInfo
from nkitools.pallas.source_places import NOWHERE, Place
from nkitools.pallas.write_shadow import Shadow


class TracedKernel:
    """A Pallas call whose events are kept in ``traced``, if it is traced; ``here``: the DMA that a thread runs."""

    traced: GridTrace | None
    memory: Memory
    shadows: dict[Any, Shadow]
    lock: threading.RLock
    here: threading.local

    @property
    @abstractmethod
    def call(self) -> Call | None:
        """Return the Pallas call, once the first point of its grid has run."""

    def trace_read(self, key: BufferKey, ranges: Ranges, core: int, source: SourceInfo | None) -> None:
        """Keep a read in the trace of the call, if there is one."""
        with self.lock:
            found = self._traced_buffer(key)
            if found is None:
                return
            traced, touch = found[0], found[0].touch(found[1], ranges)
            dma = getattr(self.here, "dma", None)
            if dma is not None:
                traced.read(id(dma), touch)
            elif source is None:
                traced.read((key[2], core), touch)
            else:
                traced.add("read", "kernel", (int(key[2]), core), self._place(source), (touch,))

    def trace_write(
        self, key: BufferKey, ranges: Ranges, core: int, source: SourceInfo | None, *, masked: bool = False
    ) -> None:
        """Keep a write, and what was written, in the trace of the call, if there is one.

        ``masked``: elements that are not written keep their values.
        """
        with self.lock:
            found = self._traced_buffer(key)
            if found is None:
                return
            traced, touch = found[0], found[0].touch(found[1], ranges)
            content = self.memory.mem[key].content
            value = content[write_shadow.clipped(ranges, content.shape)]
            dma = getattr(self.here, "dma", None)
            if dma is not None:
                who, begun = (int(dma.src_device_id), int(dma.src_local_core_id)), traced.begun(dma)
                place = source_places.of_source(dma.source_info, NOWHERE)
                traced.add("DMA", "dma", who, place, traced.moved(id(dma)), (touch,), value, begun)
            elif source is None:
                moved, shadow = traced.moved((key[2], core)), self.shadows[key]
                kind = "block in" if shadow.kind == "window" else "block out"
                place = NOWHERE if shadow.operand is None else shadow.operand.place
                traced.add(kind, "pipeline", (int(key[2]), core), place, moved, (touch,), value)
            else:
                who = int(key[2]), core
                kept = (touch,) if masked else ()
                traced.add("write", "kernel", who, self._place(source), kept, (touch,), value)

    def trace_semaphore(self, kind: str, core: int, source: SourceInfo | None, note: str) -> None:
        """Keep a signal, of a DMA too, or the end of a wait in the trace of the call, if there is one."""
        with self.lock:
            if self.traced is None or self.call is None:
                return
            dma = getattr(self.here, "dma", None)
            source = source if dma is None else dma.source_info
            place = NOWHERE if source is None else source_places.of_source(source, NOWHERE)
            cores = self.memory.num_cores_per_device
            self.traced.add(kind, "semaphore", (core // cores, core % cores), place, note=note)

    def _traced_buffer(self, key: BufferKey) -> tuple[GridTrace, int] | None:
        shadow = self.shadows.get(key)
        if self.traced is None or shadow is None or self.call is None:
            return None
        return self.traced, self.traced.buffer(key, shadow, self.memory)

    def _place(self, source: SourceInfo | None) -> Place:
        assert self.call is not None
        return self.call.place if source is None else source_places.of_source(source, self.call.kernel_place)
