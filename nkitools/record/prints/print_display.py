"""The display of device prints as they come: on a terminal, or nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print

Show = Callable[["Print", bool], bool]
"""Shows a print. Takes whether the way in prints to stdout, returns whether it has taken that over."""

_show: ContextVar[Show | None] = ContextVar("nkitools_show", default=None)


def shown_by() -> Show | None:
    """Return the function that shows device prints as they come; None: only their way in prints them."""
    return _show.get()


@contextmanager
def showing_prints(show: Show | None) -> Iterator[None]:
    """Show the prints of runs inside with ``show``; with None none of them, but for what ways in print themselves."""
    before = _show.get()
    _show.set(show)
    try:
        yield
    finally:
        # Not by a token: it may be closed in another context than it was opened in.
        _show.set(before)
