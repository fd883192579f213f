"""A function called in a process of its own: a kernel that hangs, crashes or takes too much memory ends no server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from nkitools.processes import Limits
from nkitools.processes.warm import Ended, WarmCalls

__all__ = ["Ended", "call", "warm"]

Plain = dict[str, Any]  # of JSON
MEMORY = 8 << 30  # bytes that a call may take
FILE_SIZE = 256 << 20  # bytes of a file that a call may write
_PROCESSES = 256
_BEFOREHAND = (
    "nkitools.serve.simulated_file",
    "nkitools.serve.linted_file",
    "nkitools.dialects.modern.isa",
    "nkitools.dialects.modern.language",
    "nkitools.suggestions.lint_interface",
    "nkitools.suggestions.catalogue",
)
_LONGEST_OUTPUT = 20_000  # characters of the text that the kernel's file prints


@cache
def warm() -> WarmCalls:
    """Return the object that runs this process's calls, in processes that have imported the simulator already."""
    return WarmCalls(_BEFOREHAND)


def call(
    function: Callable[[Plain], Plain], request: Plain, *, seconds: float, cancelled: threading.Event | None = None
) -> Plain:
    """Return ``function(request)``, computed in another process, with ``printed``, the text on its stdout.

    Raises `Ended` after ``seconds``, beyond the limits of memory, when ``cancelled`` is set, and if the process ends
    without a result; ValueError for ``seconds`` that are no time limit.
    """
    found = warm().call(function, request, Limits(seconds, MEMORY, FILE_SIZE, MEMORY, _PROCESSES), cancelled)
    cut = len(found.printed) > _LONGEST_OUTPUT
    return {**found.value, "printed": found.printed[:_LONGEST_OUTPUT] + ("… (cut off here)" if cut else "")}
