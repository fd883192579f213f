"""Collectors of runs: each run started inside ``collect_runs()`` is appended to its list, also when it fails later.

Attendants are called when a run begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from nkitools.record.run import Run

_T = TypeVar("_T")
_listeners: ContextVar[tuple[list[Run], ...]] = ContextVar("nkitools_listeners", default=())
WATCHES: ContextVar[tuple[Any, ...]] = ContextVar("nkitools_watches", default=())
"""The watches that are on (`nkitools.record.watch.watching`): runs ask for them, and few load what watches."""


@contextmanager
def added(variable: ContextVar[tuple[_T, ...]], item: _T) -> Iterator[_T]:
    """Add an item to the tuple of a context variable for the body of a ``with``."""
    variable.set((*variable.get(), item))
    try:
        yield item
    finally:
        # Not by a token: those of generator fixtures may be closed in another context than they were opened in.
        variable.set(tuple(each for each in variable.get() if each is not item))


def collect_runs() -> AbstractContextManager[list[Run]]:
    """Collect the runs that start inside a block, ``with collect_runs() as runs:``, in a list.

    A run is appended when it begins, by whatever way in, and stays if it fails. Runs in another thread or process, as
    those of `sweep` and `verify`, are not collected. Nested collectors each get all.
    """
    return added(_listeners, [])


def is_collected(run: Run | None) -> bool:
    """Return whether every collector that collects here has a run; one that is gone only where none collects."""
    return all(any(each is run for each in runs) for runs in _listeners.get())


class Attendant(Protocol):
    """The interface of an attendant of runs, called in the thread of the run."""

    def begun(self, run: Run) -> None:
        """Note that a run begins."""

    def ended(self, run: Run) -> None:
        """Note that a run has ended, well or not."""


_attendants: ContextVar[tuple[Attendant, ...]] = ContextVar("nkitools_attendants", default=())


def attend_runs(attendant: Attendant) -> AbstractContextManager[Attendant]:
    """Call ``attendant`` for the runs of nkitools' own simulator inside."""
    return added(_attendants, attendant)


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
