"""Vector clocks in which each copy in flight counts for itself, in the place of those of JAX's TPU interpretation.

JAX's clocks have few entries for copies, by default one, and each copy draws its entry from NumPy's global random
numbers. Two copies of one entry look as if one had happened before the other, so that a race with a copy in flight is
not seen once another copy was waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nkitools.pallas import jax_internals
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Array, Dma


class VectorClock:
    """A moment of a core or a copy: the number of earlier events of each core and copy. Missing entries are 0."""

    def __init__(self, size: int) -> None:
        self.counts: Array = np.zeros(size, np.int32)

    def copy(self) -> VectorClock:
        """Return a clock that goes on by itself."""
        new = VectorClock(0)
        new.counts = self.counts.copy()
        return new

    def update(self, other: VectorClock) -> None:
        """Let all that happened before ``other`` have happened before this moment too."""
        self.counts = np.maximum(*_alike(self.counts, other.counts))

    def inc(self, position: int) -> None:
        """Count one event of the core or copy that has the entry at ``position``."""
        if position >= len(self.counts):
            self.counts = _longer(self.counts, position + 1)
        self.counts[position] += 1

    def count(self, position: int) -> int:
        """Return the number of earlier events of an entry."""
        return int(self.counts[position]) if position < len(self.counts) else 0

    def ordered(self, other: VectorClock) -> bool:
        """Return whether one of the two moments happened before the other."""
        mine, its = _alike(self.counts, other.counts)
        ahead = mine - its
        return bool((ahead.min() >= 0) != (ahead.max() <= 0))


def _alike(one: Array, other: Array) -> tuple[Array, Array]:
    size = max(len(one), len(other))
    return _longer(one, size), _longer(other, size)


def _longer(counts: Array, size: int) -> Array:
    return counts if len(counts) == size else np.concatenate([counts, np.zeros(size - len(counts), counts.dtype)])


def _had_ended(copy: Dma | None, position: int, now: VectorClock | None) -> bool:
    """Return whether a copy had ended before the moment ``now``, by its entry at ``position``."""
    if copy is None or now is None or copy.state.name != "COMPLETED":
        return False
    return now.count(position) >= int(copy.clock.count(position))


class OwnEntries:
    """A memory that gives each copy in flight an entry of its own: the first free one, or one more."""

    VectorClock = VectorClock  # the name by which JAX makes the clocks of a memory, since 0.11
    num_cores: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._copies: list[Dma | None] = []  # the last copy of each entry; None before it is known
        self._copies_lock = threading.Lock()
        self._starting = threading.local()

    def get_semaphores_and_increment_clock(self, *args: Any, **kwargs: Any) -> Any:
        """Keep the moment at which a core may be starting a copy."""
        semaphores, clock = super().get_semaphores_and_increment_clock(*args, **kwargs)  # type: ignore[misc]
        self._starting.clock = clock
        return semaphores, clock

    @property
    def moment(self) -> Any:
        """Return the moment at which the core of this thread came to its last semaphore."""
        return self._starting.clock

    def get_random_virtual_device_id(self) -> int:
        """Return the entry of the copy that is being started."""
        now, first = self.moment, self.num_cores
        with self._copies_lock:
            free = (at for at, copy in enumerate(self._copies) if _had_ended(copy, first + at, now))
            entry = next(free, len(self._copies))
            self._copies[entry : entry + 1] = [None]
        return first + entry

    def append_semaphore_task(self, semaphore_id: int, global_core_id: int, task: Callable[[], None]) -> None:
        """Note which copy has an entry."""
        copy = getattr(task, "__self__", None)
        if copy is not None:
            with self._copies_lock:
                self._copies[copy.virtual_device_id - self.num_cores] = copy
        super().append_semaphore_task(semaphore_id, global_core_id, task)  # type: ignore[misc]


def replacements(memory: type) -> dict[tuple[Any, str], Any]:
    """Return the replacements in JAX by module and name, with ``memory`` as the interpreter's class of memory."""
    shared = jax_module(jax_internals.SHARED_MEMORY)
    return {(shared, "SharedMemory"): memory, **jax_internals.clock_functions(VectorClock)}


@contextmanager
def own_entries() -> Iterator[None]:
    """Give each copy an entry of its own in TPU interpretation inside the block."""
    theirs = jax_internals.of(jax_internals.SHARED_MEMORY, "SharedMemory")
    ours = type("SharedMemory", (OwnEntries, theirs), {})
    with jax_internals.replaced(replacements(ours)):
        yield
