"""Processes that a test starts, reads and interrupts: each wait has a limit, and the group ends with the block."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SECONDS = 120.0
"""A test waits this long for what a process should do at once; on a busy machine that takes a while."""


@contextmanager
def started(command: Sequence[str], **said: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a group of its own, with pipes for stdout and stderr; all of the group ends with the block.

    The process hears Ctrl-C, also where this one has been started to ignore the signal: a shell does so with what it
    starts in the background, and whatever that starts ignores it too.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, text=True, start_new_session=True, **{**pipes, **said})
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=SECONDS)


def line_of(process: subprocess.Popen[str], seconds: float = SECONDS) -> str:
    """Return the next line of a process's stdout.

    AssertionError where none comes in time: a process that prints into a pipe keeps its lines unless it is started with
    ``-u``, or flushes them.
    """
    assert process.stdout is not None
    until, line = time.monotonic() + seconds, b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"no line within {seconds:g} s, only {line!r}"
        found = os.read(process.stdout.fileno(), 1)
        assert found, f"the process ended behind {line!r}"
        line += found
    return line.decode()


def python(*arguments: str) -> list[str]:
    """Return a command of this Python whose output comes as it is printed, whatever the environment says."""
    return [sys.executable, "-u", *arguments]


def has_ended(process: int, seconds: float = 10.0) -> bool:
    """Return whether a process ends in time; one that only waits for its parent to ask for its status has ended."""
    until = time.monotonic() + seconds
    while _is_running(process):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def running(folder: str) -> list[str]:
    """Return the commands of the processes whose program lies in a folder; none where the system has no /proc."""
    commands = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            commands.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [each for each in commands if each.startswith(folder)]


def _is_running(process: int) -> bool:
    """Return whether a process runs: without ``ps``, which a small machine may lack."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return not Path("/proc/self").exists()  # macOS: the kernel's answer is the whole one
