"""Calls of functions in forks of one process, which has imported the modules of the functions.

The warm process is a script of its own: it takes sockets from its owner, and forks a guard for each, which calls one
function in a child (`nkitools.processes.guard`). It ends when its owner closes the control socket, or dies.
"""

from __future__ import annotations

import importlib
import os
import pickle
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from nkitools.platforms import fork_unawaited, start_group
from nkitools.processes import End, Limits, checked_seconds
from nkitools.processes.guard import Text, keep

_LOOK_SECONDS = 0.02
_START_SECONDS = 60.0  # that imports and the end of all processes may take beside the call itself
_MOST_TEXT = 1 << 20  # bytes of the text of a call
_MOST_ANSWER = 256 << 20
_PROGRAM = "import sys; sys.path[:] = {path!r}; from nkitools.processes.warm import main; main({control}, {modules!r})"


class Ended(Exception):
    """A call has no result: it took too long or too much, was cancelled, or its process ended."""


@dataclass(frozen=True)
class Returned:
    """The value that a call returned, and the text that it and its processes printed."""

    value: Any
    printed: str


class WarmCalls:
    """Calls functions in processes that have ``modules`` imported, several at a time; each call in one of its own."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = tuple(modules)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[Any] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start to import the modules, so that the first call need not wait for it."""
        with self._lock:
            self._running()

    def close(self) -> None:
        """End the warm process and the calls that it has taken."""
        with self._lock:
            if self._control is not None and self._process is not None:
                self._control.close()
                self._process.wait()
            self._control = self._process = None

    def call(
        self, function: Callable[[Any], Any], argument: Any, limits: Limits, cancelled: threading.Event | None = None
    ) -> Returned:
        """Call ``function(argument)`` in a separate process and return its result.

        Raises `Ended` beyond the limits, when ``cancelled`` is set, and if the process ends without a result.
        """
        checked_seconds(limits.seconds)
        with self._connected() as connection:
            with suppress(OSError):  # a guard that is gone: there will be no answer
                connection.send((limits, pickle.dumps((function, argument))))
            return self._awaited(connection, limits, cancelled)

    def _awaited(self, connection: Connection, limits: Limits, cancelled: threading.Event | None) -> Returned:
        until = time.monotonic() + limits.seconds + _START_SECONDS
        while not connection.poll(_LOOK_SECONDS):
            if cancelled is not None and cancelled.is_set():
                raise Ended("it was cancelled")
            if time.monotonic() > until:
                raise Ended(f"it did not end within {limits.seconds:g} s")
        try:
            status, why, answer, printed = connection.recv()
        except (EOFError, OSError):
            raise Ended("its process was lost") from None
        text = printed.decode(errors="replace")
        if why or status or answer is None:
            raise Ended(_reason(End(status, why, limits), text))
        return Returned(pickle.loads(answer), text)

    def _connected(self) -> Connection:
        """Return this end of a socket whose other end a guard has."""
        here, there = socket.socketpair()
        with there, self._lock:
            for _ in range(2):  # a call may have ended the warm process
                try:
                    socket.send_fds(self._running(), [b"c"], [there.fileno()])
                    break
                except OSError:
                    continue
        return Connection(here.detach())

    def _running(self) -> socket.socket:
        if self._process is not None and self._control is not None and self._process.poll() is None:
            return self._control
        if self._control is not None:
            self._control.close()
        self._control, there = socket.socketpair()
        with there:
            said = _PROGRAM.format(path=sys.path, control=there.fileno(), modules=self._modules)
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            self._process = start_group([sys.executable, "-c", said], pass_fds=(there.fileno(),), **streams)
        return self._control


def _reason(end: End, text: str) -> str:
    """Return a sentence on the end of a call without a result, with the last line that it printed."""
    if end.why == "answer":
        return f"its answer has more than {_MOST_ANSWER >> 20} MiB"
    lines = text.strip().splitlines()
    has_raised = end.status == 1 and not end.why
    return f"{end.words()}: {lines[-1][:300]}" if has_raised and lines else end.words()


def main(control: int, modules: Sequence[str]) -> None:
    """Import modules, and fork a guard for each socket that comes, until the owner is gone."""
    os.set_inheritable(control, False)
    for each in modules:
        with suppress(ImportError):  # the call itself says what is missing
            importlib.import_module(each)
    owner = socket.socket(fileno=control)
    while True:
        said, files, _, _ = socket.recv_fds(owner, 1, 1)
        if not said:
            return
        if fork_unawaited() == 0:
            owner.close()
            _guard(Connection(files[0]))
        os.close(files[0])


def _guard(owner: Connection) -> None:
    """Call the function that the owner asks for, send back its pickled result and its text, and end this process."""
    text, answer = Text(_MOST_TEXT), Text(_MOST_ANSWER)
    mark = secrets.token_bytes(16)  # what the function writes into all open files is no answer
    try:
        limits, asked = owner.recv()
        status, why = keep(owner.fileno(), limits, lambda: _play(asked, mark, text, answer), (text, answer))
        _, _, found = bytes(answer.kept).partition(mark)
        why = why or ("answer" if answer.left_out else "")
        owner.send((status, why, found or None, bytes(text.kept)))
    except (EOFError, OSError):  # the owner is gone
        pass
    finally:
        os._exit(0)


def _play(asked: bytes, mark: bytes, text: Text, answer: Text) -> None:
    """Call the function, with stdout and stderr in the text: the owner's own stdout may carry a protocol."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for each in (1, 2):
        os.dup2(text.end, each)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    for one in (text.fd, text.end, answer.fd):
        os.close(one)
    sys.dont_write_bytecode = True  # Python takes it for a file of one size edited within a second
    function, argument = pickle.loads(asked)
    found = pickle.dumps(function(argument))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with open(answer.end, "wb") as file:
        file.write(mark + found)
