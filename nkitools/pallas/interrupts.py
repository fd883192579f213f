"""Handles Ctrl-C while XLA computes: Python would see it only after the computation, which may never end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_SECONDS = 2.0
_EXIT_CODE = 130  # what a shell reports of a program that Ctrl-C has ended
_NO_OTHER = -1


@contextmanager
def ended_by_ctrl_c(name: str) -> Iterator[None]:
    """End the process with one line if the computation inside goes on for two seconds after Ctrl-C.

    ``name``: of the function, for the line. If the computation ends in time, Ctrl-C is a KeyboardInterrupt as usual.
    Does nothing outside of the main thread, or if an event loop watches signals.
    """
    if not _can_watch():
        yield
        return
    here, there = socket.socketpair()
    there.setblocking(False)
    is_over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(here, is_over, name), daemon=True)
    signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(_NO_OTHER)
        there.close()
        watcher.join()
        here.close()


def _can_watch() -> bool:
    """Return whether this thread may watch signals, and no other code does."""
    if threading.current_thread() is not threading.main_thread():
        return False
    other = signal.set_wakeup_fd(_NO_OTHER)
    if other != _NO_OTHER:
        signal.set_wakeup_fd(other)
    return other == _NO_OTHER


def _watch(signals: socket.socket, is_over: threading.Event, name: str) -> None:
    """Wait for the number of a signal, or for the end of the computation, which closes the other side."""
    while received := signals.recv(64):
        if signal.SIGINT in received and not is_over.wait(_PATIENCE_SECONDS):
            os.write(2, f"nkitools: interrupted: {name} does not end; look for a while_loop that never does\n".encode())
            os._exit(_EXIT_CODE)
