"""Collectors of runs: each run started inside ``collect_runs()`` is appended to its list, also when it fails later.

Attendants are called when a run begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nkitools.record.run import Run

_listeners: ContextVar[tuple[list[Run], ...]] = ContextVar("nkitools_listeners", default=())


@contextmanager
def collect_runs() -> Iterator[list[Run]]:
    """Collect the runs started inside, by whatever way in; nested collectors each get them."""
    runs: list[Run] = []
    _listeners.set((*_listeners.get(), runs))
    try:
        yield runs
    finally:
        # Not by a token: those of generator fixtures may be closed in another context than they were opened in.
        _listeners.set(tuple(each for each in _listeners.get() if each is not runs))


class Attendant(Protocol):
    """The interface of an attendant of runs, called in the thread of the run."""

    def begun(self, run: Run) -> None:
        """Note that a run begins."""

    def ended(self, run: Run) -> None:
        """Note that a run has ended, well or not."""


_attendants: ContextVar[tuple[Attendant, ...]] = ContextVar("nkitools_attendants", default=())


@contextmanager
def attend_runs(attendant: Attendant) -> Iterator[None]:
    """Call ``attendant`` for the runs of nkitools' own simulator inside."""
    _attendants.set((*_attendants.get(), attendant))
    try:
        yield
    finally:
        _attendants.set(tuple(each for each in _attendants.get() if each is not attendant))


def announce(run: Run) -> None:
    """Announce to every collector and attendant that ``run`` begins."""
    for runs in _listeners.get():
        runs.append(run)
    for attendant in _attendants.get():
        attendant.begun(run)


def conclude(run: Run) -> None:
    """Announce to every attendant that ``run`` has ended."""
    for attendant in reversed(_attendants.get()):
        attendant.ended(run)
