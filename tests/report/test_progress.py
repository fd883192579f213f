"""The progress of long runs: a line of its own, in a terminal only, which is gone when the run has ended."""

from __future__ import annotations

import bdb
import io
import re
import time
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run_listeners import attend_runs
from nkitools.report import progress as module
from nkitools.report.progress import Progress, showing_progress

X = np.ones((4, 4), np.float32)


class Terminal(io.StringIO):
    """A terminal that tells when something has been written."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        if "instructions" in text:
            self.seen = True
        return written

    def wait(self) -> None:
        """Until the progress has been written again."""
        self.seen, until = False, time.monotonic() + 60
        while not self.seen:
            assert time.monotonic() < until
            time.sleep(0.001)


def waiting_kernel(terminal: Terminal) -> Any:
    """A kernel that goes on when its progress has been seen in the second iteration."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
        for m in range(2):
            nisa.memset(tile, float(m))
            for n in nl.affine_range(1):
                nisa.memset(tile, float(n))
            if m == 1:
                terminal.wait()
        return x

    return kernel


def test_a_long_run_shows_how_far_it_is() -> None:
    """Kernel, instructions, counters and line, in one line that is cleared at the end."""
    terminal = Terminal()
    progress = Progress(terminal, delay=0, interval=0.01)
    with attend_runs(progress):
        nkitools.simulate(waiting_kernel(terminal), X)
        assert not progress._shown
    progress.close()
    written = terminal.getvalue()
    assert re.search(r"\rnkitools: kernel 4 instructions, m=1, test_progress\.py:\d+ \(\d+ s\)\x1b\[K", written)
    assert written.endswith("\r\x1b[K")
    assert "\n" not in written


def test_programs_that_take_turns_show_the_one_that_runs() -> None:
    """Each in a thread of its own."""
    terminal = Terminal()
    progress = Progress(terminal, delay=0, interval=0.01)

    def kernel(x: Any) -> Any:
        for m in range(2):
            if m == 1 and nl.program_id(0) == 1:
                terminal.wait()
        return x

    with attend_runs(progress):
        nkitools.simulate(kernel, X, grid=2)
    progress.close()
    assert ", m=1, test_progress.py:" in terminal.getvalue()


def test_at_a_breakpoint_the_terminal_is_the_debuggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types there is not disturbed."""
    looks: list[bool] = []
    terminal = Terminal()
    progress = Progress(terminal, delay=0, interval=0.001)

    def debugged() -> bool:
        looks.append(is_debugged())
        return looks[-1]

    is_debugged = module._is_debugged
    monkeypatch.setattr(module, "_is_debugged", debugged)

    class Debugger(bdb.Bdb):
        def user_line(self, frame: Any) -> None:
            progress.begun(nkitools.Run("kernel", "builtin"))
            while len(looks) < 3:
                time.sleep(0.001)
            progress.close()

    Debugger().run("pass")
    assert looks[:3] == [True] * 3
    assert terminal.getvalue() == ""


def test_a_short_run_shows_nothing() -> None:
    """Nothing is written before the delay has passed."""
    terminal = Terminal()
    with showing_progress(terminal) as progress:
        nkitools.simulate(lambda x: x, X)
    assert progress is not None
    assert terminal.getvalue() == ""
    assert progress._thread is not None
    progress._thread.join(60)
    assert not progress._thread.is_alive()


def test_who_writes_to_the_terminal_finds_the_line_cleared() -> None:
    """And it comes back afterwards."""
    terminal = Terminal()
    progress = Progress(terminal, delay=0, interval=0.01, lead=lambda: "<lead>")
    progress.begun(nkitools.Run("kernel", "builtin"))
    while "nkitools: kernel" not in terminal.getvalue():
        time.sleep(0.001)
    with progress.hidden():
        terminal.write("a print\n")
    while not terminal.getvalue().rpartition("a print\n")[2]:
        time.sleep(0.001)
    progress.close()
    before, _, after = terminal.getvalue().partition("a print\n")
    assert before.startswith("<lead>\rnkitools: kernel")
    assert before.endswith("\r\x1b[K")
    assert after.startswith("<lead>\rnkitools: kernel")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_it_never_appears_in_a_pipe(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in a terminal that cannot clear a line."""
    monkeypatch.setenv("TERM", "dumb")
    with showing_progress(stream) as progress:
        assert progress is None


def test_a_terminal_that_is_gone_does_not_end_the_run() -> None:
    """The line stops coming."""
    terminal = Terminal()
    terminal.close()
    progress = Progress(terminal, delay=0, interval=0.01)
    progress.begun(nkitools.Run("kernel", "builtin"))
    assert progress._thread is not None
    progress._thread.join(60)
    assert not progress._thread.is_alive()
    progress.close()
