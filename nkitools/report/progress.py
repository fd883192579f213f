"""A line in the terminal about runs of more than a few seconds: the number of instructions and the current iteration.

A separate thread reads the record and the kernel's frames now and then; the run itself does nothing for it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_stack
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from nkitools.authors_code.positions import line_of
from nkitools.record.loop_counters import author_frames, counters
from nkitools.record.run_listeners import attend_runs

if TYPE_CHECKING:
    from nkitools.record.run import Run

_DELAY = 3.0  # seconds that a run may take in silence
_INTERVAL = 0.5  # seconds between two looks
_CLEAR = "\r\x1b[K"


class Progress:
    """Writes its line to ``stream`` while a run takes longer than ``delay`` seconds.

    ``lead()`` returns text to write before the line.
    """

    def __init__(
        self, stream: TextIO, delay: float = _DELAY, interval: float = _INTERVAL, lead: Callable[[], str] = str
    ) -> None:
        self._stream = stream
        self._lead = lead
        self._delay = delay
        self._interval = interval
        self._runs: list[tuple[Run, float]] = []
        self._lock = threading.Lock()
        self._shown = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begun(self, run: Run) -> None:
        """Note that a run begins; the first run starts the thread."""
        self._runs.append((run, time.monotonic()))
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="nkitools progress", daemon=True)
            self._thread.start()

    def ended(self, run: Run) -> None:
        """Note that a run has ended, and clear the line of progress for later output."""
        with self.hidden():
            self._runs = [each for each in self._runs if each[0] is not run]

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        with self.hidden():
            self._runs = []

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line of progress during a block that writes to the terminal."""
        with self._lock:
            if self._shown:
                self._write(_CLEAR)
                self._shown = False
            yield

    def _look(self) -> None:
        while not self._ended.wait(self._interval):
            with self._lock:
                is_long = bool(self._runs) and time.monotonic() - self._runs[0][1] >= self._delay
                if is_long and not _is_debugged():
                    self._draw(*self._runs[0])

    def _draw(self, run: Run, since: float) -> None:
        width = shutil.get_terminal_size().columns - 1
        if not self._shown:
            self._write(self._lead())
        self._write("\r" + progress_line(run, time.monotonic() - since)[:width] + "\x1b[K")
        self._shown = True

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone: the run goes on
            self._ended.set()


@contextmanager
def showing_progress(stream: TextIO) -> Iterator[Progress | None]:
    """Show the progress of long runs inside the block, if ``stream`` is a terminal that can clear a line; else yield
    None.
    """
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    progress = Progress(stream)
    try:
        with attend_runs(progress):
            yield progress
    finally:
        progress.close()


def progress_line(run: Run, seconds: float) -> str:
    """``nkitools: giou 12,345 instructions, m=3, n=1, giou.py:41 (7 s)``."""
    records = run.records or (() if run.record is None else (run.record,))
    issued = f" {sum(record.count for record in records):,} instructions" if records else ""
    return f"nkitools: {run.kernel}{issued}{_where()} ({seconds:.0f} s)"


def _is_debugged() -> bool:
    """Return whether a debugger at a breakpoint uses the terminal."""
    frames = (frame for innermost in sys._current_frames().values() for frame, _ in walk_stack(innermost))
    return any(frame.f_globals.get("__name__") == "bdb" for frame in frames)


def _where() -> str:
    """Return the loop counters and the line of a kernel that runs now, in whatever thread."""
    return next(filter(None, map(_where_in, sys._current_frames().values())), "")


def _where_in(frame: FrameType) -> str:
    is_waiting = frame.f_code.co_filename == threading.__file__  # for its turn
    authors = [] if is_waiting else author_frames(frame)
    if not authors:
        return ""
    loops = [f"{name}={value}" for name, value in counters(frame).items()]
    line = f"{os.path.basename(authors[0].f_code.co_filename)}:{line_of(authors[0])}"
    return "".join(f", {each}" for each in (*loops, line))
