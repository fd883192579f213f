"""Each test in a process of its own, forked from the session that has collected the suite, under limits.

Collecting a large suite takes minutes: it is done once. What a test leaves behind ends with its process.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.field.outcomes import Outcome, Seen
from nkitools.record.run_listeners import attend_runs

_MIB = 2**20
# A test that waits takes no processor time: it ends after so many times its limit.
_PATIENCE = 5
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Limits:
    """The processor time and the memory that one test may take."""

    seconds: float  # of the processor; of the clock five times as many
    mib: int  # of memory, beyond what the session has taken to collect the suite


class _Process:
    """The process of one test."""

    def __init__(self, item: pytest.Item, limits: Limits) -> None:
        self.item = item
        self.receiver, sender = multiprocessing.Pipe(duplex=False)
        self._until = time.monotonic() + _PATIENCE * limits.seconds
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if not self._pid:
            _run(item, limits, sender)
        sender.close()

    def left(self) -> float:
        """Return the seconds until the process has waited too long."""
        return max(0.0, self._until - time.monotonic())

    def end(self) -> Outcome:
        """Return the outcome of the test, whose process has said it, has died, or has waited too long."""
        said: Outcome | None = None
        try:
            if self.receiver.poll():
                said = self.receiver.recv()
            else:
                os.kill(self._pid, signal.SIGKILL)
        except EOFError:
            pass
        _, status, used = os.wait4(self._pid, 0)
        self.receiver.close()
        outcome = said or _death(self.item.nodeid, status, waited=not self.left())
        outcome.seconds = round(used.ru_utime + used.ru_stime, 2)
        outcome.mib = round(used.ru_maxrss / (_MIB if sys.platform == "darwin" else 1024))
        return outcome


def outcomes(items: list[pytest.Item], limits: Limits, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of the tests as they come, ``jobs`` tests at a time."""
    waiting = iter(items)
    running: dict[Connection, _Process] = {}
    while True:
        while len(running) < jobs and (item := next(waiting, None)) is not None:
            process = _Process(item, limits)
            running[process.receiver] = process
        if not running:
            return
        ready = wait(list(running), min(process.left() for process in running.values()))
        late = [receiver for receiver, process in running.items() if not process.left()]
        for receiver in {*ready, *late}:
            yield running.pop(receiver).end()  # type: ignore[arg-type]


def _death(test: str, status: int, *, waited: bool) -> Outcome:
    """Return the outcome of a test whose process ended without a word."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGPROF:
        return Outcome(test, "timeout", "took more of the processor's time than the limit")
    if waited:
        return Outcome(test, "timeout", f"had not ended after {_PATIENCE} times the limit")
    how = f"by {signal.Signals(number).name}" if number else f"with exit status {os.waitstatus_to_exitcode(status)}"
    return Outcome(test, "died", f"the process ended {how}")


def _run(item: pytest.Item, limits: Limits, sender: Connection) -> None:
    """Run one test in this process, send its outcome, and end the process."""
    seen, status = Seen(Path(os.getcwd())), 1
    try:
        _limit(limits)
        item.config.pluginmanager.register(_Exceptions(seen.failed))
        with attend_runs(seen):
            reports = runtestprotocol(item, log=False, nextitem=None)
        _unlimit()
        sender.send(seen.outcome(item.nodeid, reports))
        status = 0
    finally:
        sender.close()
        os._exit(status)


class _Exceptions:
    """The plugin that keeps the exceptions of a test's phases, which reports hold as text alone."""

    def __init__(self, keep: Callable[[BaseException], None]) -> None:
        self._keep = keep

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Keep the exception of one phase."""
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self._keep(call.excinfo.value)


def _limit(limits: Limits) -> None:
    """Limit the processor's time by an alarm that ends the process, and the memory where the system can."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    if _STATM.exists():
        taken = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + limits.mib * _MIB, resource.RLIM_INFINITY))


def _unlimit() -> None:
    """Lift the limits: the outcome is still to be sent."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    if _STATM.exists():
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
