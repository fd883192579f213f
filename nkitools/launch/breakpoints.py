"""``breakpoint()`` while a kernel runs: a debugger that skips nkitools' frames, unless the user has another."""

from __future__ import annotations

import sys
from typing import Any


class authors_breakpoints:  # noqa: N801 - it is used as a function
    """``with authors_breakpoints(True):`` ``breakpoint()`` stops in the author's frames; with False as it did.

    A hook of the user's has precedence.
    """

    def __init__(self, stops: bool) -> None:
        self._stops = stops

    def __enter__(self) -> None:
        self._sets = self._stops and sys.breakpointhook is sys.__breakpointhook__
        if self._sets:
            sys.breakpointhook = _stop

    def __exit__(self, *error: object) -> None:
        if self._sets and sys.breakpointhook is _stop:
            sys.breakpointhook = sys.__breakpointhook__


def _stop(*args: Any, **kwargs: Any) -> None:
    from nkitools.launch.debugger import KernelDebugger

    KernelDebugger(*args, **kwargs).set_trace(sys._getframe(1))
