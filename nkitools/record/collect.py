"""Who listens to runs: each run started inside ``collect_runs()`` is appended to its list, also when it fails later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

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


def announce(run: Run) -> None:
    """Tell every listener that ``run`` begins."""
    for runs in _listeners.get():
        runs.append(run)
