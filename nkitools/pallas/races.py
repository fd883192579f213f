"""Replaces the race detector of JAX's TPU interpretation: the same order of events, but races are reported, not
printed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nkitools.pallas import jax_internals, source_places
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import BufferKey, Dma, Ranges, SourceInfo
from nkitools.pallas.source_places import Place

_FIRST_DMA = 100


class WatchedRaces:
    """A race detector that reports to the watch; JAX's own prints."""

    races_found: bool
    lock: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.accesses: dict[Any, list[tuple[Access, Any]]] = {}  # each with its clock

    def check_read(self, *checked: Any, source_info: SourceInfo | None = None) -> None:
        who, clock, key, ranges = jax_internals.access_of(*checked)
        self._check(key, Access(False, who, ranges, source_info), clock)

    def check_write(self, *checked: Any, source_info: SourceInfo | None = None) -> None:
        who, clock, key, ranges = jax_internals.access_of(*checked)
        self._check(key, Access(True, who, ranges, source_info), clock)

    def _check(self, key: BufferKey, this: Access, clock: Any) -> None:
        """Compare with every earlier access to the buffer that neither happened before this one nor only read too."""
        with self.lock:
            earlier = list(self.accesses.setdefault(key, []))
            self.accesses[key].append((this, clock))
        for other, its_clock in earlier:
            if not (this.is_write or other.is_write) or jax_internals.are_ordered(its_clock, clock):
                continue
            if _overlap(this.ranges, other.ranges):
                self.races_found = True
                self.tell_race(key, this, other)
                return

    def tell_race(self, key: BufferKey, this: Access, other: Access) -> None:
        """Report a race of the kernel that is being watched."""
        _tell_race(key, this, other)


def _overlap(one: Ranges, other: Ranges) -> bool:
    """Return whether two accesses share an element; dimensions that an access does not index are whole."""
    return all(_meet(a, b) for a, b in zip(one, other, strict=False))


def _meet(a: int | slice, b: int | slice) -> bool:
    first, second = _progression(a), _progression(b)
    if len(first) * len(second) < 1 << 12:
        return bool(set(first) & set(second))
    return first[0] <= second[-1] and second[0] <= first[-1]


def _progression(index: int | slice) -> range:
    if isinstance(index, slice):
        return range(int(index.start or 0), int(index.stop), int(index.step or 1))
    return range(int(index), int(index) + 1)


class Access(NamedTuple):
    """One of the two accesses of a race. JAX numbers devices from 0, and DMAs, as if they were devices, from 100."""

    is_write: bool
    who: tuple[Any, Any]
    ranges: Any
    source: Any

    @property
    def is_dma(self) -> bool:
        return int(self.who[0]) >= _FIRST_DMA

    @property
    def place(self) -> Place:
        return source_places.of_source(self.source) if self.source is not None else source_places.NOWHERE

    def text(self) -> str:
        line = f" at line {self.place.line}" if self.place.line else ""
        by = "by a DMA started" if self.is_dma else "by the pipeline" if self.source is None else "by the kernel"
        return f"a {'write' if self.is_write else 'read'} of {_ranges(self.ranges)} {by}{line}"


def _tell_race(key: BufferKey, this: Access, other: Access) -> None:
    """PL203, at the kernel's access or the later copy; the message names the access that it should wait for."""
    kernel = jax_module(jax_internals.INTERPRETER)._shared_memory.kernel
    if kernel.call is None or kernel.hangs:
        return
    ordered = sorted((this, other), key=lambda each: (not each.place.line, each.is_dma, each.is_dma and -each.who[0]))
    place = ordered[0].place if ordered[0].place.line else kernel.call.kernel_place
    buffer = kernel.shadows.get(key)
    name = buffer.text() if buffer is not None else "a buffer"
    both = f"{ordered[0].text()} and {ordered[1].text()} may happen at once"
    about = getattr(buffer, "name", "")
    copy = next((found for each in (this, other) if (found := _from_another_device(each, kernel)) is not None), None)
    if copy is None:
        kernel.rules.tell("PL203", f"{name}: {both}", place, (), about, remedy=_remedy_of_race(*ordered))
    else:
        place = source_places.of_source(copy.source_info, kernel.call.kernel_place)
        message = f"{name} is written by another device while this one may still use it: {both}"
        remedy = (
            f"If line {ordered[0].place.line} reads what the copy brings, call wait_recv() before it; if it needs what "
            "was there before, let a regular semaphore tell the sender that the buffer is free, before it copies."
        )
        kernel.rules.tell(
            "PL210", message, place, (), about, remedy="" if ordered[0].is_dma or ordered[0].is_write else remedy
        )


def _remedy_of_race(first: Access, second: Access) -> str:
    """Return which copy has to be waited for, and before which line; '' where no copy takes part."""
    copy = second if second.is_dma else first
    if not copy.is_dma or not (copy.place.line and first.place.line):
        return ""
    if first.is_dma:
        return (
            f"Call .wait() on the copy started at line {second.place.line} before the one of line {first.place.line} "
            "starts, or give each a buffer and a semaphore of its own."
        )
    return (
        f"Call .wait() on the copy started at line {copy.place.line} before line {first.place.line}; with several "
        "buffers look whether copy, wait and access use one buffer, with a semaphore of its own."
    )


def _from_another_device(access: Access, kernel: Any) -> Dma | None:
    """Return the copy from another device whose write this access is; None if it is none, or not waited for."""
    dma: Dma | None = kernel.remote_write(int(access.who[0])) if access.is_dma and access.is_write else None
    return dma


def _ranges(ranges: Ranges) -> str:
    shown = [
        f"{int(each.start or 0)}:{int(each.stop)}" if isinstance(each, slice) else str(int(each)) for each in ranges
    ]
    return f"[{', '.join(shown)}]" if shown else "all of it"
