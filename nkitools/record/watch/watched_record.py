"""The record of a run, with the observers that look at it: those of the watches that are on, and others."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from nkitools.record.record import Observer, Record
from nkitools.record.run_listeners import WATCHES, added
from nkitools.record.source_sites import KernelLines

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("nkitools_observers", default=())


def observing(observer: Observer) -> AbstractContextManager[Observer]:
    """Let an observer look at the runs that are started inside."""
    return added(_observers, observer)


def watched_record(lines: KernelLines | None = None) -> Record:
    """Return a new record, which keeps written values if a watch is on; ``lines``: its kernel's."""
    record = Record(lines)
    if WATCHES.get():
        from nkitools.record.watch.watching import WatchedValues

        record.observe(WatchedValues(WATCHES.get()))
    for observer in _observers.get():
        record.observe(observer)
    return record
