"""The waits of a kernel's cores for semaphores, by which a deadlock of several devices shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from nkitools.pallas.jax_types import SourceInfo

BOTH_SIDES = "Call .wait() on the copy, or wait_send() and wait_recv(), once for each .start()."

ONE_TOO_MANY = (
    "Other copies of this line are waited for: start no copy for which no turn is left, pl.when(i + 1 < n), or wait "
    "for it after the loop."
)


def _times(count: int, word: str) -> str:
    return f"{count} times {word}" if count > 1 else f"once {word}"


def remedy_of_signals(has: int, wants: int) -> str:
    """Return what to do about a wait for ``wants`` signals of a regular semaphore, where ``has`` have come."""
    less = f", or wait for {has}" if has else ""
    return (
        f"Signal the semaphore {_times(wants - has, 'more')} before this wait{less}: each device that it waits for "
        "calls pl.semaphore_signal, with the device_id of the one that waits."
    )


def remedy_of_copies(lines: list[int], *, any_started: bool) -> str:
    """Return what to do about a wait for a copy that never ends; ``lines``: of the copies that are in flight."""
    if lines:
        many = f"those started at lines {', '.join(map(str, lines))} are"
        other = many if len(lines) > 1 else f"the one started at line {lines[0]} is"
        return (
            f"No copy signals this semaphore, and {other} not waited for: wait with its semaphore and slot, or start "
            "the copy that this wait is for."
        )
    if any_started:
        return "All copies that were started have been waited for: leave this wait out, or start a copy before it."
    return "Start the copy before the wait for it, on every device: none has been started."


def remedy_of_count(count: int, *, of_copies: bool) -> str:
    """Return what to do about a semaphore that counts more than 0 when the kernel ends."""
    if of_copies:
        return BOTH_SIDES
    return f"Signal it {_times(count, 'less')}, or wait for {count} more with pl.semaphore_wait."


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
