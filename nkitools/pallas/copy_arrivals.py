"""The copies that signal a semaphore: a wait shows that one of them has ended only if it shows that all have.

A semaphore counts bytes, not copies. As long as copies were started for more bytes than the waits so far have taken,
each of these copies may still be in flight. JAX's interpreter, however, orders a waiting core behind every copy that
it has carried out by then.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from nkitools.pallas.jax_types import Dma
from nkitools.pallas.vector_clocks import VectorClock


class _Started(NamedTuple):
    copy: Dma
    is_sent: bool  # the semaphore counts what was read from the copy's source

    def was_before(self, now: VectorClock) -> bool:
        """Return whether the copy was started before the moment ``now``, as far as the core of ``now`` can know."""
        core = self.copy.src_global_core_id
        return bool(self.copy.clock.count(core) <= now.count(core))

    @property
    def has_ended(self) -> bool:
        state = self.copy.state.name
        return state != "STARTED" if self.is_sent else state == "COMPLETED"


class CopyArrivals:
    """The copies that signal one semaphore on one core."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[_Started] = []
        self._end = VectorClock(0)

    def start(self, copy: Dma, *, is_sent: bool) -> None:
        """Note a copy that was started."""
        with self._lock:
            self._started.append(_Started(copy, is_sent))

    def arrive(self, end: VectorClock) -> None:
        """Note the moment at which a copy has ended."""
        with self._lock:
            self._end.update(end)

    def known(self, now: VectorClock, left: int) -> VectorClock | None:
        """Return a moment after all copies, if a wait at ``now`` shows that all have ended; None if it does not.

        ``left``: the count of the semaphore after the wait. Copies of other devices that may have been started before
        or after ``now`` are ignored.
        """
        with self._lock:
            earlier = [each for each in self._started if each.was_before(now)]
            if not all(each.has_ended for each in earlier) or (left and len(earlier) == len(self._started)):
                return None
            self._started = [each for each in self._started if not each.has_ended]
            return self._end
