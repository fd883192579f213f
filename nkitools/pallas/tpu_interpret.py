"""Runs a function in JAX's TPU interpretation and watches races, DMAs, blocks and unwritten memory.

TPU interpretation has state for the whole process (its memory, the flag of its race detector). This module restores all
that it replaces or sets, also after an error, and makes one run at a time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from nkitools.pallas import jax_internals, reshaped_refs, source_places, write_shadow
from nkitools.pallas.calls import Call, call_of, semantics
from nkitools.pallas.copy_arrivals import CopyArrivals
from nkitools.pallas.imports import jax_module
from nkitools.pallas.interpreter_events import Kernel, Names, Otherwise, Watch
from nkitools.pallas.jax_types import Array, BufferKey, Dma, DType, Ranges, Thread
from nkitools.pallas.races import WatchedRaces
from nkitools.pallas.semaphore_waits import Wait
from nkitools.pallas.vector_clocks import OwnEntries, VectorClock, replacements

_lock = threading.RLock()
_watches: list[Watch] = []
_PAUSE = 0.002  # seconds between two looks at a semaphore that other devices signal


def parameters(*, cores: int, seed: int | None) -> Any:
    """Return the interpreter's parameters; equal arguments give equal objects, so that JAX reuses compiled programs."""
    return jax_module("jax.experimental.pallas.tpu").InterpretParams(
        detect_races=True,
        num_cores_or_threads=cores,
        uninitialized_memory="nan",
        out_of_bounds_reads="uninitialized",
        random_seed=seed,
        grid_point_recorder=_unnamed_point,
    )


@contextlib.contextmanager
def watching(
    known: Iterable[Call] = (), otherwise: Otherwise | None = None, *, traced_bytes: int = 0
) -> Iterator[Watch]:
    """Watch every Pallas call that TPU interpretation runs within; afterwards the interpreter is as it was."""
    interpreter = jax_module(jax_internals.INTERPRETER)
    # JAX imports its interpreter of GPUs when it interprets, with a class on top of one that is replaced here.
    jax_internals.moved(jax_internals.GPU)
    classes = _classes()
    replaced = {
        (interpreter, "interpret_pallas_call"): partial(_named_call, interpreter.interpret_pallas_call),
        (interpreter, "RaceDetectionState"): classes["RaceDetectionState"],
        (interpreter, "_check_for_revisiting"): _no_check,
        **replacements(classes["SharedMemory"]),
        (jax_module(jax_internals.SHARED_MEMORY), "Semaphore"): classes["Semaphore"],
    }
    if not jax_internals.moved(jax_internals.ANNOTATED):
        utilities = jax_module(jax_internals.INTERPRETER_RANGES)
        replaced[utilities, "to_range"] = partial(_range_without_annotations, utilities.to_range)
    if not jax_internals.moved(jax_internals.RESHAPED):
        replaced |= reshaped_refs.replacements()
    if not jax_internals.moved(jax_internals.PLACED):
        placed = interpreter.remove_memory_space_p
        replaced[placed, "abstract_eval"] = partial(_of_any_memory, placed.abstract_eval)
    if not jax_internals.moved(jax_internals.COPIES):
        replaced[jax_module(jax_internals.CALLBACK), "io_callback_impl"] = _called
    watch = Watch(known, otherwise, traced_bytes=traced_bytes)
    with _lock:
        _watches.append(watch)
        try:
            with jax_internals.replaced(replaced):
                yield watch
        finally:
            _watches.pop()
            interpreter.reset_tpu_interpret_mode_state()


def _called(*args: Any, callback: Callable[..., Any], **_: Any) -> Any:
    """Call one of the interpreter's callbacks with copies of its arguments.

    JAX copies them on the threads of its devices. If each thread waits in a callback for such a copy, as in a kernel on
    as many devices as threads, no thread is left to copy.
    """
    tree_map = jax_module().tree_util.tree_map
    return tree_map(np.asarray, callback(*(np.array(each) for each in args)))


def _of_any_memory(theirs: Callable[..., Any], operand: Any) -> Any:
    """Return the type of an operand without its memory; where its author has placed it in SMEM or VMEM JAX ends."""
    try:
        return theirs(operand)
    except NotImplementedError:
        return jax_module("jax.core").ShapedArray(operand.shape, operand.dtype), set()


def _range_without_annotations(theirs: Callable[..., Any], transforms: Iterable[Any]) -> Any:
    """Return the elements of an access to a reference, without ``pltpu.annotate``, at which JAX's function fails."""
    return theirs([each for each in transforms if type(each).__name__ != "AccessAssumptionTransform"])


def _named_call(theirs: Callable[..., Any], *args: Any, interpret_params: Any, **params: Any) -> Any:
    """Interpret a Pallas call, and pass its description to the callback at every point of its grid."""
    from dataclasses import replace

    source = (
        None if jax_internals.moved(jax_internals.GRID_PRINTS) else jax_internals.of(jax_internals.SOURCES, "current")()
    )
    call = call_of({**params, "interpret": False}, [jax_module().typeof(each) for each in args], source)
    if call.place == call.kernel_place:
        caller = source_places.of_caller()
        call = replace(call, place=caller, kernel_place=call.kernel_place if call.kernel_place.line else caller)
    recorder = partial(_point, call)
    known = params["compiler_params"]
    if params["grid_mapping"].vmapped_dims and known is not None:  # JAX takes the author's, which leaves these out
        own = semantics(known, params["grid_mapping"])
        params["compiler_params"] = replace(known, dimension_semantics=own)
    return theirs(*args, interpret_params=replace(interpret_params, grid_point_recorder=recorder), **params)


def _point(call: Call, *values: Any) -> Any:
    """Note that the interpreter comes to a point of the grid."""
    token, point, core = values
    if _watches:
        kernel = getattr(jax_module(jax_internals.INTERPRETER)._shared_memory, "kernel", None)
        if kernel is not None:
            kernel.at(call, tuple(int(each) for each in np.asarray(point).reshape(-1)), int(core))
    return token


def _no_check(token: Any, *values: Any) -> Any:
    """Stand in for JAX's check of revisited blocks, which ends the run."""
    return token


def _unnamed_point(*values: Any) -> Any:
    """Stand in for the recorder until the call is known; it is part of the key of JAX's cache."""
    return values[0]


@cache
def _classes() -> dict[str, type]:
    """Our classes in the place of the interpreter's, made when JAX is there."""
    memory = jax_internals.of(jax_internals.SHARED_MEMORY, "SharedMemory")
    semaphore = jax_internals.of(jax_internals.SHARED_MEMORY, "Semaphore")
    races = jax_internals.of(jax_internals.INTERPRETER, "RaceDetectionState")
    return {
        "SharedMemory": type("WatchedMemory", (OwnEntries, _WatchedMemory, memory), {}),
        "Semaphore": type("WatchedSemaphore", (_WatchedSemaphore, semaphore), {}),
        "RaceDetectionState": type("WatchedRaces", (WatchedRaces, races), {}),
    }


class _WatchedMemory:
    """A memory that reports every access to the watch, and keeps accesses within their buffers."""

    kernel: Kernel
    mem: dict[Any, Any]
    num_cores: int
    num_cores_per_device: int
    uninitialized_memory: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kernel = _watches[-1].kernel(self)
        if self.kernel.names_before is not None:
            self.uninitialized_memory = "zero"

    def allocate_buffer(self, key: BufferKey, ref_count: int, value: Array, *args: Any, **kwargs: Any) -> None:
        if self.kernel.names_before is not None:
            value = self._otherwise_undefined(key, value, self.kernel.names_before)
        super().allocate_buffer(key, ref_count, value, *args, **kwargs)  # type: ignore[misc]
        self.kernel.allocate(key, value.shape, _source(kwargs))

    def get_buffer_content(self, key: BufferKey, rnge: Ranges, thread: Thread, *args: Any, **kwargs: Any) -> Any:
        source = _source(kwargs)
        self.kernel.read(key, rnge, self._core(thread), source)
        result = super().get_buffer_content(key, rnge, thread, *args, **kwargs)  # type: ignore[misc]
        self.kernel.trace_read(key, rnge, self._core(thread), source)
        if source is None:
            self.kernel.give_back(key, result[0])
        if self.kernel.watch.otherwise_outside:
            return (self._otherwise_outside(key, rnge, result[0]), *result[1:])
        return result

    def _otherwise_undefined(self, key: BufferKey, value: Array, names: Names) -> Array:
        """Return the first contents of a buffer, with zeros for undefined elements.

        The undefined values are constants in the program that JAX compiled for the first run.
        """
        _, kind, operand = names.get(key[1], ("", "scoped", None))
        poison = _fill(value.dtype, "nan")
        undefined = np.asarray(value != value if poison != poison else value == poison)
        if kind == "scalar":
            return value
        if kind == "input" and operand is not None:
            undefined[tuple(slice(0, size) for size in operand.shape)] = False
        return np.where(undefined, np.zeros((), value.dtype), value)

    def _otherwise_outside(self, key: BufferKey, ranges: Ranges, value: Array | None) -> Array | None:
        """Return the values of a read, with the other of JAX's fill values for elements outside of the buffer.

        JAX reads None if all elements are outside.
        """
        content = self.mem[key].content
        if not write_shadow.is_outside(ranges, content.shape):
            return value
        inside = np.asarray(content[write_shadow.clipped(ranges, content.shape)])
        wanted = write_shadow.lengths(ranges, content.shape)
        changed = np.full(wanted, _fill(content.dtype, "nan" if self.uninitialized_memory == "zero" else "zero"))
        changed = changed.astype(content.dtype)
        if inside.ndim == changed.ndim:
            changed[tuple(slice(0, size) for size in inside.shape)] = inside
        return changed

    def store_buffer_content(
        self, key: BufferKey, rnge: Ranges, value: Array, thread: Thread, *args: Any, **kwargs: Any
    ) -> Any:
        self.kernel.write(key, rnge, self._core(thread), _source(kwargs))
        inside, value = self._inside(key, rnge, value)
        result = super().store_buffer_content(key, inside, value, thread, *args, **kwargs)  # type: ignore[misc]
        self.kernel.trace_write(key, rnge, self._core(thread), _source(kwargs))
        return result

    def swap_buffer_content(
        self, key: BufferKey, rnge: Ranges, value: Array, mask: Array | None, thread: Thread, *args: Any, **kwargs: Any
    ) -> Any:
        self.kernel.write(key, rnge, self._core(thread), _source(kwargs), mask)
        whole = value
        inside, value = self._inside(key, rnge, value)
        if mask is not None and value.shape != mask.shape:
            mask = mask[tuple(slice(0, size) for size in value.shape)]
        result, *more = super().swap_buffer_content(  # type: ignore[misc]
            key, inside, value, mask, thread, *args, **kwargs
        )
        self.kernel.trace_write(key, rnge, self._core(thread), _source(kwargs), masked=mask is not None)
        return (result if value.shape == whole.shape else whole, *more)

    def append_semaphore_task(self, semaphore_id: int, global_core_id: int, task: Callable[[], None]) -> None:
        dma, ours = getattr(task, "__self__", None), task
        if dma is not None and _is_of_nothing(dma):
            return
        if dma is not None:
            is_sent = task.__name__ == "execute_read"
            (dma.src_sem if is_sent else dma.dst_sem).arrivals[int(global_core_id)].start(dma, is_sent=is_sent)
            ours = self.kernel.task(dma, task)
        super().append_semaphore_task(semaphore_id, global_core_id, ours)  # type: ignore[misc]

    def get_sempahores_with_nonzero_count(self, device_id: int) -> list[Any]:
        """Return the semaphores that JAX prints at the end of the kernel: [], since the watch reports them."""
        self.kernel.waits.leave(
            range(device_id * self.num_cores_per_device, (device_id + 1) * self.num_cores_per_device)
        )
        for semaphore, core in super().get_sempahores_with_nonzero_count(device_id):  # type: ignore[misc]
            count, of_copies = int(semaphore.count_by_core[core]), core in semaphore.arrivals
            self.kernel.left_over(self._core(core), count, of_copies=of_copies)
        return []

    def spoil(self, key: BufferKey, *, adversely: bool = False) -> None:
        """Make a buffer as undefined as when it was allocated; ``adversely`` with the other of JAX's fillings."""
        how = self.uninitialized_memory
        if adversely:
            how = "nan" if how == "zero" else "zero"
        buffer = self.mem.get(key)
        if buffer is not None:
            buffer.content[...] = _fill(buffer.content.dtype, how)

    def _core(self, thread: Thread) -> int:
        return jax_internals.core_of(thread, self.num_cores_per_device)

    def _inside(self, key: BufferKey, ranges: Ranges, value: Array) -> tuple[Any, Any]:
        """Return the part of a write inside of the buffer; the watch has reported the rest, and the run goes on."""
        buffer = self.mem[key]
        if not write_shadow.is_outside(ranges, buffer.content.shape):
            return ranges, value
        inside = write_shadow.clipped(ranges, buffer.content.shape)
        wanted = buffer.content[inside].shape
        return inside, value[tuple(slice(0, size) for size in wanted)] if value.ndim == len(wanted) else value


def _source(kwargs: dict[str, Any]) -> Any:
    return getattr(kwargs.get("logging_info"), "source_info", None)


def _is_of_nothing(dma: Dma) -> bool:
    """Return whether a copy has no elements: a wait runs copies until its bytes are there, and none is for this one."""
    changes = (*dma.src_transforms, *dma.dst_transforms)
    return any(getattr(index, "size", 1) == 0 for each in changes for index in getattr(each, "indices", ()))


def _fill(dtype: DType, how: str) -> Any:
    """Return JAX's fill value for undefined memory."""
    numpy = jax_module("jax.numpy")
    if how == "zero":
        return 0
    if numpy.issubdtype(dtype, numpy.floating):
        return np.nan
    return True if dtype == np.bool_ else numpy.iinfo(dtype).max


class _WatchedSemaphore:
    """A semaphore that reports endless waits, where JAX hangs, and knows which copies must have ended after a wait."""

    count_by_core: Any
    clocks: Any
    cv: Any
    shared_memory: Any
    id: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrivals = [CopyArrivals() for _ in range(self.shared_memory.num_cores)]

    def wait(self, value: int, global_core_id: int, **kwargs: Any) -> None:
        memory = self.shared_memory
        core = int(global_core_id)
        if not int(value) or not self._runs_dmas(int(value), core, _source(kwargs)):
            return  # a wait for nothing, such as a copy of no rows, at which JAX ends where nothing has come before
        self._know_of_copies(int(value), core)
        super().wait(value, global_core_id, **kwargs)  # type: ignore[misc]
        memory.kernel.trace_semaphore("wait", core, _source(kwargs), f"semaphore {self.id} takes {int(value)}")
        if self.id in getattr(memory, "fixed_id_sem", ()):
            memory.kernel.met.add(core)

    def _know_of_copies(self, value: int, core: int) -> None:
        """Let a wait that is sure to be through all copies end after them."""
        ended = self.arrivals[core].known(self.shared_memory.moment, int(self.count_by_core[core]) - value)
        if ended is not None and self.clocks[core] is not None:
            with self.cv:
                self.clocks[core].update(ended)

    def signal(self, inc: int, global_core_id: int, clock: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(self.shared_memory.kernel.watch.here, "dma", None) is not None:
            self.arrivals[int(global_core_id)].arrive(clock)
            clock = VectorClock(0)
        super().signal(inc, global_core_id, clock, *args, **kwargs)  # type: ignore[misc]
        note = f"semaphore {self.id} gets {int(inc)}"
        self.shared_memory.kernel.trace_semaphore("signal", int(global_core_id), _source(kwargs), note)

    def _runs_dmas(self, value: int, core: int, source: Any) -> bool:
        """Run DMAs that signal the semaphore until its count is ``value``; return False if it never will be."""
        memory = self.shared_memory
        waits = memory.kernel.waits
        while self.count_by_core[core] < value:
            memory.check_failed()
            waits.end(core)  # before a DMA is taken off the list: the core does something now
            task = jax_internals.next_task(self, core)
            if task is not None:
                task()
            elif memory.num_cores == 1:
                memory.kernel.stuck(core, source, int(self.count_by_core[core]), value)
                return False
            else:
                wait = Wait(core // memory.num_cores_per_device, source, int(self.count_by_core[core]), value)
                waits.begin(core, wait, partial(_can_go_on, self, core, value))
                waiting = waits.deadlock(memory.num_cores)
                if waiting:
                    memory.kernel.deadlock(waiting)
                if memory.kernel.hangs:
                    waits.end(core)
                    return False
                time.sleep(_PAUSE)
        waits.end(core)
        return True


def _can_go_on(semaphore: Any, core: int, value: int) -> bool:
    """Return whether a semaphore has counted far enough, or a started DMA will signal it."""
    return bool(semaphore.count_by_core[core] >= value or semaphore.tasks[core])
