"""``breakpoint()`` while a kernel runs: a debugger that skips nkitools' frames, unless the user has another."""

from __future__ import annotations

import sys
from typing import Any

from nkitools.facts import options

_CHOSEN = ("PYTHONBREAKPOINT",)


class authors_breakpoints:  # noqa: N801 - it is used as a function
    """``with authors_breakpoints():`` ``breakpoint()`` stops in the author's frames.

    PYTHONBREAKPOINT and a hook of the user's have precedence.
    """

    def __enter__(self) -> None:
        self._sets = sys.breakpointhook is sys.__breakpointhook__ and options.variables(_CHOSEN)[0] is None
        if self._sets:
            sys.breakpointhook = _stop

    def __exit__(self, *error: object) -> None:
        if self._sets and sys.breakpointhook is _stop:
            sys.breakpointhook = sys.__breakpointhook__


def _stop(*args: Any, **kwargs: Any) -> None:
    from nkitools.launch.debugger import KernelDebugger

    KernelDebugger(*args, **kwargs).set_trace(sys._getframe(1))
