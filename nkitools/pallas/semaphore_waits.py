"""The waits of a kernel's cores for semaphores, by which a deadlock of several devices shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from nkitools.pallas.jax_types import SourceInfo


class Wait(NamedTuple):
    """A wait of a core that has begun and not ended."""

    device: int
    source: SourceInfo | None
    has: int
    wants: int


class Waits:
    """The cores that wait, and those whose device has ended the kernel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[int, tuple[Wait, Callable[[], bool]]] = {}
        self._ended: set[int] = set()

    def begin(self, core: int, wait: Wait, can_go_on: Callable[[], bool]) -> None:
        """Note a wait of ``core``; ``can_go_on`` says whether its semaphore has counted far enough or still may."""
        with self._lock:
            self._begun[core] = (wait, can_go_on)

    def end(self, core: int) -> None:
        """Note that the wait of ``core`` is over."""
        with self._lock:
            self._begun.pop(core, None)

    def leave(self, cores: Any) -> None:
        """Note that these cores have ended the kernel."""
        with self._lock:
            self._ended.update(int(core) for core in cores)

    def deadlock(self, cores: int) -> list[Wait]:
        """Return the waits, if each of the ``cores`` either waits without end or has ended the kernel."""
        with self._lock:
            if len(self._ended | set(self._begun)) < cores or any(can_go_on() for _, can_go_on in self._begun.values()):
                return []
            return [wait for _, (wait, _) in sorted(self._begun.items())]
