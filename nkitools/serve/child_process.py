"""A function called in a process of its own, which can be ended: a kernel that hangs or crashes ends no server."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from nkitools.platforms import prepared_context

Plain = dict[str, Any]  # of JSON
_BEFOREHAND = (
    "nkitools.serve.simulated_file",
    "nkitools.dialects.modern.isa",
    "nkitools.dialects.modern.language",
    "nkitools.lint.engine",
    "nkitools.suggestions.lint_interface",
    "nkitools.suggestions.catalogue",
)
_LONGEST_OUTPUT = 20_000  # characters of the text that the kernel's file prints
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 2.0


class Ended(Exception):
    """The call has no result: it took too long, was cancelled, or its process ended."""


def context() -> multiprocessing.context.BaseContext:
    """Return the way in which processes start, with the simulator imported beforehand."""
    return prepared_context(_BEFOREHAND)


def call(
    function: Callable[[Plain], Plain], request: Plain, *, seconds: float, cancelled: threading.Event | None = None
) -> Plain:
    """Return ``function(request)``, computed in another process, with ``printed``, the text on its stdout.

    Raises `Ended` after ``seconds``, when ``cancelled`` is set, and where the process ends without a result.
    """
    here, there = multiprocessing.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="nkitools-") as folder:
        output = os.path.join(folder, "printed")
        process = context().Process(target=_play, args=(there, function, request, output), daemon=True)  # type: ignore[attr-defined]
        process.start()
        there.close()
        try:
            return _awaited(process, here, seconds, cancelled) | {"printed": _text_of(output)}
        finally:
            here.close()
            _end(process)


def _awaited(process: BaseProcess, here: Connection, seconds: float, cancelled: threading.Event | None) -> Plain:
    end = time.monotonic() + seconds
    while not here.poll(_LOOK_SECONDS):
        if cancelled is not None and cancelled.is_set():
            raise Ended("it was cancelled")
        if time.monotonic() > end:
            raise Ended(f"it did not end within {seconds:g} s")
        if not process.is_alive() and not here.poll(0):
            raise Ended(f"its process ended with exit code {process.exitcode}")
    try:
        found: Plain = here.recv()
    except EOFError:
        process.join(_PATIENCE_SECONDS)
        raise Ended(f"its process ended with exit code {process.exitcode}") from None
    return found


def _end(process: BaseProcess) -> None:
    if process.is_alive():
        process.kill()
    process.join(_PATIENCE_SECONDS)


def _text_of(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            text = file.read(_LONGEST_OUTPUT + 1)
    except OSError:
        return ""
    cut = len(text) > _LONGEST_OUTPUT
    return text[:_LONGEST_OUTPUT] + ("… (cut off here)" if cut else "")


def _play(connection: Connection, function: Callable[[Plain], Plain], request: Plain, output: str) -> None:
    """Call the function with stdout and stderr in a file: the server's own stdout carries its protocol."""
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.dont_write_bytecode = True  # Python takes it for a file of one size edited within a second
    found = function(request)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(found)
    connection.close()
