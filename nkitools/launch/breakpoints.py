"""``breakpoint()`` while a kernel runs: a debugger that skips nkitools' frames, unless the user has another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nkitools.facts import options


@contextmanager
def authors_breakpoints() -> Iterator[None]:
    """Let ``breakpoint()`` stop in the author's frames; PYTHONBREAKPOINT and a hook of the user's have precedence."""
    chosen = sys.breakpointhook is not sys.__breakpointhook__ or options.variables(("PYTHONBREAKPOINT",))[0] is not None
    if chosen:
        yield
        return
    sys.breakpointhook = _stop
    try:
        yield
    finally:
        if sys.breakpointhook is _stop:
            sys.breakpointhook = sys.__breakpointhook__


def _stop(*args: Any, **kwargs: Any) -> None:
    from nkitools.launch.debugger import KernelDebugger

    KernelDebugger(*args, **kwargs).set_trace(sys._getframe(1))
