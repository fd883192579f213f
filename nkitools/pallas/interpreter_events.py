"""Watches the memory of an interpreted TPU: who wrote what, at which point of the grid.

TPU interpretation keeps a kernel's buffers in an object of shared memory, through which every read, write and DMA goes.
During a watched run that object has a class of ours, which keeps a shadow of each buffer: for each element the grid
step that wrote it last. From the shadows come findings that no mode of JAX reports, and those that JAX reports too, but
with the author's line, and the run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nkitools.pallas import source_places, write_shadow
from nkitools.pallas.calls import Call, Operand, placed_equations
from nkitools.pallas.grid_trace import GridTrace
from nkitools.pallas.jax_types import Array, BufferKey, Dma, Memory, Ranges, SourceInfo
from nkitools.pallas.observed_grid import WatchedGrid
from nkitools.pallas.observed_rules import WatchedRules
from nkitools.pallas.semaphore_waits import (
    BOTH_SIDES,
    ONE_TOO_MANY,
    Wait,
    Waits,
    remedy_of_copies,
    remedy_of_count,
    remedy_of_signals,
)
from nkitools.pallas.source_places import NOWHERE, Place
from nkitools.pallas.traced_kernel import TracedKernel
from nkitools.pallas.unlike_reference import Returned
from nkitools.pallas.write_shadow import GIVEN, PADDING, UNWRITTEN, VISITED, Observed, Shadow


def is_remote(dma: Dma) -> bool:
    """Return whether a DMA goes to another device."""
    return int(dma.src_device_id) != int(dma.dst_device_id)


Names: TypeAlias = dict[int, tuple[str, str, Operand | None]]  # name, kind and operand of a call's own buffers

_FIRST_BUFFER = 100  # what JAX calls the first buffer of a Pallas call


class Watch:
    """The findings of one run of a function: ``certain`` ones, and ``suspected`` ones, which count only if the results
    depend on them.

    ``known``: the function's Pallas calls from tracing, which have the source lines that the interpreter lacks.
    ``otherwise``: the changes for a second run. For suspicions about an operand the watch makes its values as bad as
    they can be on a TPU: values that a core left behind at another point of a parallel dimension are lost, and so are
    outputs that several points wrote. ``traced_bytes``: if not 0, events are kept, with values of so many bytes.
    """

    def __init__(
        self, known: Iterable[Call] = (), otherwise: Otherwise | None = None, *, traced_bytes: int = 0
    ) -> None:
        self.traced_bytes = traced_bytes
        keys = [] if otherwise is None else list(otherwise.suspected)
        self.otherwise_outside = otherwise is not None and not keys
        self._earlier = otherwise.earlier.kernels if otherwise is not None and keys else None
        self.adverse = frozenset(about for _, about, *_ in keys)
        self.raced = frozenset(about for rule, about, *_ in keys if rule in ("PL203", "PL206"))
        self.known = {call.likeness: call for call in known}
        self.certain = Observed()
        self.suspected = Observed()
        self.cleared: set[tuple[Place, str]] = set()  # the buffers that a point of a grid writes before it reads them
        self.kernels: list[Kernel] = []
        self.here = threading.local()

    def kernel(self, memory: Memory) -> Kernel:
        """Begin to watch the memory of a Pallas call."""
        before = self._earlier
        at = len(self.kernels)
        names = None if before is None else before[at].names if at < len(before) else {}
        self.kernels.append(Kernel(self, memory, names))
        return self.kernels[-1]

    def finish(self) -> None:
        """Add the findings that need the ends of the kernels."""
        for kernel in self.kernels:
            kernel.finish()


class Otherwise(NamedTuple):
    """The changes for a second run: other values in undefined memory and for what is ``suspected`` in the ``earlier``
    run.

    Without suspicions, other values for reads outside of buffers.
    """

    earlier: Watch
    suspected: Sequence[Any] = ()


class Kernel(TracedKernel):
    """One Pallas call while it runs: its buffers, the points of the grid so far, and the core of each.

    ``names_before``: the buffers of the same call in an earlier run with other values in undefined memory.
    """

    def __init__(self, watch: Watch, memory: Memory, names_before: Names | None = None) -> None:
        self.watch, self.here = watch, watch.here
        self.names_before = names_before
        self.memory = memory
        self.grid = WatchedGrid()
        self.rules = WatchedRules(watch.certain, watch.suspected, self.grid)
        self.allocated: dict[Any, tuple[tuple[int, ...], Place]] = {}
        self.shadows: dict[Any, Shadow] = {}
        self.names: Names = {}
        self.in_place: dict[int, Operand] = {}  # the outputs that take an input's memory, by the buffer of the input
        self.carried: dict[Any, Any] = {}
        self._touched: dict[tuple[str, int], int] = {}  # the last step at which the kernel accessed a buffer
        self.met: set[int] = set()  # the cores that have waited for the barrier
        self.waits = Waits()
        self.dmas: dict[int, Any] = {}
        self.lock = threading.RLock()
        self.finished = False
        self.hangs = False
        self.returned: dict[str, Returned] = {}  # the outputs as JAX took them last
        self.traced = GridTrace(self.grid, watch.traced_bytes) if watch.traced_bytes else None

    @property
    def call(self) -> Call | None:
        """Return the Pallas call, once the first point of its grid has run."""
        return self.grid.call

    def at(self, call: Call, point: tuple[int, ...], core: int) -> None:
        """Note that ``core`` begins a point of the grid."""
        with self.lock:
            if self.call is None:
                call = self.watch.known.get(call.likeness, call)
                self._name_buffers(call)
                if self.traced is not None:
                    self.traced.begin(call, self.shadows, self.memory)
            if self.grid.at(self.call or call, point, core) and self.watch.adverse:
                self._forget(core)

    def _forget(self, core: int) -> None:
        """Mark the vector memory of ``core`` as unwritten, as if another core went on."""
        for key, buffer in self.shadows.items():
            is_own = buffer.kind == "scratch" or (buffer.kind == "window" and buffer.is_output)
            if is_own and key[3] == core and self.rules.about(buffer.name) in self.watch.adverse:
                self.memory.spoil(key, adversely=True)

    def _name_buffers(self, call: Call) -> None:
        """Give the buffers their names, in the order in which the interpreter allocates them."""
        aliases = {given - len(call.prefetched): output for given, output in call.params["input_output_aliases"]}
        aliased = set(aliases.values())
        self.in_place = {_FIRST_BUFFER + given: call.outputs[output] for given, output in aliases.items()}
        order: list[tuple[str, str, Operand | None]] = []
        order += [(each.name, "input", each) for each in call.inputs]
        order += [(each.name, "output", each) for index, each in enumerate(call.outputs) if index not in aliased]
        order += [(each.name, "scalar", None) for each in call.prefetched]
        order += [(each.name, "window", each) for each in call.operands if each.memory not in ("any", "hbm")]
        order += [(each.name, "scratch", None) for each in call.scratch if each.memory != "semaphore"]
        self.names = {_FIRST_BUFFER + index: each for index, each in enumerate(order)}
        for key, (shape, place) in self.allocated.items():
            name, kind, operand = self.names.get(key[1], (f"buffer {key[1]}", "scoped", None))
            self.shadows[key] = self._new(name, kind, operand, shape, place)

    def _new(self, name: str, kind: str, operand: Operand | None, shape: tuple[int, ...], place: Place) -> Shadow:
        if kind == "input" and operand is not None:
            steps = write_shadow.given(operand.shape, shape)
        else:
            steps = write_shadow.new_shadow(shape, GIVEN if kind == "scalar" else UNWRITTEN)
        return Shadow(name, kind, steps, operand, place)

    # ------------------------------------------------------------------ buffers

    def allocate(self, key: BufferKey, shape: tuple[int, ...], source: SourceInfo | None) -> None:
        """Register a new buffer: of the call, on each device, or one that the kernel allocates at its steps."""
        with self.lock:
            place = source_places.of_source(source)
            if self.call is None:
                self.allocated[key] = (shape, place)
            elif key not in self.shadows:
                name, kind, operand = self.names.get(key[1], ("run_scoped", "scoped", None))
                self.shadows[key] = self._new(name, kind, operand, shape, place)

    def read(self, key: BufferKey, ranges: Ranges, core: int, source: SourceInfo | None) -> None:
        """Note a read: by the kernel, by a DMA, or by the pipeline that moves blocks."""
        with self.lock:
            buffer = self.shadows.get(key)
            if buffer is None:
                return
            dma = getattr(self.watch.here, "dma", None)
            place = self._place(source)
            self.rules.check_inside(buffer, ranges, place, core, "reads", is_pipeline=source is None and dma is None)
            where = write_shadow.clipped(ranges, buffer.steps.shape)
            seen = np.asarray(buffer.steps[where])
            if dma is not None:
                self.carried[id(dma)] = seen.copy()
                self.rules.check_read_race(buffer, seen, place, core)
            elif source is None:
                self.carried[key[2], core] = (key, seen.copy())
                if buffer.kind == "output" and self.rules.about(buffer.name) in self.watch.raced:
                    self.memory.spoil(key, adversely=True)
            else:
                self._touched[buffer.name, core] = self.grid.step(core)
                if buffer.is_output:
                    self.rules.own_read(buffer, seen, place, core)
                self.rules.check_defined(buffer, where, seen, place, core)
                self.rules.check_carry(buffer, seen, place, core)

    def write(
        self, key: BufferKey, ranges: Ranges, core: int, source: SourceInfo | None, mask: Array | None = None
    ) -> None:
        """Note a write: by the kernel, by a DMA, or by the pipeline that moves blocks."""
        with self.lock:
            buffer = self.shadows.get(key)
            if buffer is None:
                return
            dma = getattr(self.watch.here, "dma", None)
            place = self._place(source)
            self.rules.check_inside(buffer, ranges, place, core, "writes", is_pipeline=source is None and dma is None)
            where = write_shadow.clipped(ranges, buffer.steps.shape)
            if dma is not None:
                self._carry_over(buffer, where, self.carried.pop(id(dma), None), place, core)
            elif source is None:
                self._move_block(buffer, where, ranges, (key[2], core))
            else:
                if self._touched.get((buffer.name, core)) != self.grid.step(core):
                    self._touched[buffer.name, core] = self.grid.step(core)
                    self.watch.cleared.add(self.rules.about(buffer.name))
                self.rules.check_write_race(buffer, np.asarray(buffer.steps[where]), place, core)
                self._mark(buffer, where, mask, core)

    def give_back(self, key: BufferKey, content: Array | None) -> None:
        """Keep an output that JAX reads as a whole: the last read returns it to the function."""
        buffer = self.shadows.get(key)
        if buffer is None or self.call is None or content is None:
            return
        operand = buffer.operand if buffer.kind == "output" else self.in_place.get(key[1])
        if operand is not None and content.shape == operand.shape:
            steps = buffer.steps.copy()
            self.returned[operand.name] = Returned(self.call, operand, content, steps, self.grid.points)

    def _place_of_wait(self, source: SourceInfo | None) -> Place:
        """Return the line of a wait. JAX has none for the kernel's own waits: it is known only if the kernel has just
        one.
        """
        assert self.call is not None
        if source is not None:
            return source_places.of_source(source, self.call.kernel_place)
        equations = placed_equations(self.call.jaxpr, self.call.kernel_place)
        places = {place for equation, place in equations if equation.primitive.name == "semaphore_wait"}
        return places.pop() if len(places) == 1 else self.call.kernel_place

    def _mark(self, buffer: Shadow, where: tuple[Any, ...], mask: Array | None, core: int) -> None:
        if mask is None:
            buffer.steps[where] = self.grid.step(core)
        else:
            part = np.asarray(buffer.steps[where])
            inside = mask[tuple(slice(0, size) for size in part.shape)]
            buffer.steps[where] = np.where(inside, self.grid.step(core), part)

    def _carry_over(
        self, buffer: Shadow, where: tuple[Any, ...], carried: Array | None, place: Place, core: int
    ) -> None:
        """Mark the elements that a DMA writes as written now; those with an undefined source stay undefined."""
        self.rules.check_write_race(buffer, np.asarray(buffer.steps[where]), place, core)
        part = np.asarray(buffer.steps[where])
        if carried is None or carried.size != part.size:
            buffer.steps[where] = self.grid.step(core)
        else:
            undefined = np.isin(carried, (UNWRITTEN, VISITED, PADDING))
            buffer.steps[where] = np.where(undefined, carried, self.grid.step(core)).reshape(part.shape)

    def _move_block(self, buffer: Shadow, where: tuple[Any, ...], ranges: Ranges, who: tuple[int, int]) -> None:
        """Note that the pipeline loads an input's block into its window, or stores an output's block from it.

        ``who``: the device, and the core within it.
        """
        core = who[1]
        source, carried = self.carried.pop(who, (None, None))
        part = np.asarray(buffer.steps[where])
        if carried is None:
            return
        if carried.shape != part.shape:  # it juts out, which has been reported
            fitted = write_shadow.new_shadow(part.shape, GIVEN)
            common = tuple(slice(0, min(a, b)) for a, b in zip(carried.shape, part.shape, strict=False))
            if carried.ndim == part.ndim:
                fitted[common] = carried[common]
            carried = fitted
        if buffer.kind == "window":
            buffer.steps[where] = carried
            return
        self.rules.check_visits(buffer, part, ranges, core)
        self.grid.leave_block(buffer.name, core)
        step = self.grid.step(core)
        undefined = np.isin(carried, (UNWRITTEN, VISITED, PADDING))
        buffer.steps[where] = np.where(undefined, VISITED, step)
        # After its block is stored, an output's window holds nothing that the kernel may count on.
        self.shadows[source].steps[...] = UNWRITTEN
        self.memory.spoil(source)

    # ------------------------------------------------------------------ DMAs and semaphores

    def task(self, dma: Dma, task: Callable[[], None]) -> Callable[[], None]:
        """Return the part of a DMA that runs at the wait for it, with its reads and writes attributed to the DMA."""
        with self.lock:
            if id(dma) not in self.dmas:
                self.dmas[id(dma)] = (dma, self.grid.point(int(dma.src_local_core_id)))
                if self.traced is not None and self.call is not None:
                    place = source_places.of_source(dma.source_info, NOWHERE)
                    self.traced.start(dma, place, self._target(dma))
                self._check_barrier(dma)

        def run() -> None:
            before = getattr(self.watch.here, "dma", None)
            self.watch.here.dma = dma
            try:
                task()
            finally:
                self.watch.here.dma = before

        return run

    def _check_barrier(self, dma: Dma) -> None:
        """PL209: a copy to another device starts before that device is sure to run the kernel."""
        call = self.call
        if (
            call is None
            or self.hangs
            or not is_remote(dma)
            or not call.has_barrier
            or dma.src_global_core_id in self.met
        ):
            return
        target = self._target(dma)
        point = self.grid.point(int(dma.src_local_core_id))
        message = f"`{target}` of another device is written before a wait for the barrier semaphore"
        self.rules.tell("PL209", message, source_places.of_source(dma.source_info, call.kernel_place), point, target)

    def remote_write(self, number: int) -> Dma | None:
        """Return the copy to another device that has this number; None for a local or an unknown one."""
        dma = next((each for each, _ in self.dmas.values() if int(each.id) == number), None)
        return dma if dma is not None and is_remote(dma) else None

    def deadlock(self, waiting: list[Wait]) -> None:
        """PL208: devices wait for each other."""
        if self.hangs:
            return
        self.hangs = True  # what is found from here on follows from it
        assert self.call is not None
        texts, first = [], None
        for each in waiting:
            place = self._place_of_wait(each.source)
            first = first or place
            texts.append(f"device {each.device} at line {place.line} (has {each.has} of {each.wants})")
        message = f"devices wait for each other, and none goes on: {', '.join(texts)}"
        least = next((each for each in waiting if each.source is None), None)
        remedy = self._remedy_of_wait() if least is None else remedy_of_signals(least.has, least.wants)
        self.rules.tell("PL208", message, first or self.call.kernel_place, (), "semaphore", remedy=remedy)

    def stuck(self, core: int, source: SourceInfo | None, has: int, wants: int) -> None:
        """PL208: a wait can never end."""
        message = f"a semaphore is waited for that nothing signals any more: it has {has}, the wait takes {wants}"
        remedy = remedy_of_signals(has, wants) if source is None else self._remedy_of_wait()
        place, point = self._place_of_wait(source), self.grid.point(core)
        self.rules.tell("PL208", message, place, point, "semaphore", remedy=remedy)

    def _remedy_of_wait(self) -> str:
        """Return what to do about a wait for a copy that never ends, by the copies that were started."""
        flying = [dma for dma, _ in self.dmas.values() if dma.state.name != "COMPLETED"]
        lines = {source_places.of_source(dma.source_info).line for dma in flying} - {0}
        return remedy_of_copies(sorted(lines), any_started=bool(self.dmas))

    def left_over(self, core: int, count: int, *, of_copies: bool) -> None:
        """PL204: a semaphore keeps a count when the kernel ends."""
        known = any(rule in ("PL204", "PL209") for rule, *_ in self.watch.certain.findings)
        if known or self.hangs or self.call is None:
            return
        why = "it was signalled, or a DMA was started on it, more often than it was waited for"
        message = f"a semaphore still counts {count} when the kernel ends: {why}"
        place, point = self.call.kernel_place, self.grid.point(core)
        self.rules.tell("PL204", message, place, point, "semaphore", remedy=remedy_of_count(count, of_copies=of_copies))

    def finish(self) -> None:
        """PL204 and PL205, at the end of the kernel."""
        if self.call is None or self.finished or self.hangs:
            return
        self.finished = True
        self.rules.tell_races()
        places = {
            id(dma): source_places.of_source(dma.source_info, self.call.kernel_place) for dma, _ in self.dmas.values()
        }
        waited = {places[id(dma)] for dma, _ in self.dmas.values() if dma.state.name == "COMPLETED"}
        for dma, point in self.dmas.values():
            if dma.state.name != "COMPLETED":
                place = places[id(dma)]
                remedy = ONE_TOO_MANY if place in waited else BOTH_SIDES if is_remote(dma) else ""
                message = "a DMA is started and never waited for"
                self.rules.tell("PL204", message, place, point, self._target(dma), remedy=remedy)
        for buffer in self.shadows.values():
            if buffer.kind == "output":
                self.rules.check_written(buffer)

    def _target(self, dma: Dma) -> str:
        """Return the buffer that a DMA writes."""
        return next((each.name for key, each in self.shadows.items() if key[1] == int(dma.dst_buffer_id)), "dma")
