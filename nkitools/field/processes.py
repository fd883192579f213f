"""Each test in a process of its own, forked from the session that has collected the suite, under limits.

Collecting a large suite takes minutes: it is done once. What a test leaves behind ends with its process.
"""

from __future__ import annotations

import faulthandler
import math
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from nkitools.field.outcomes import Outcome, Seen
from nkitools.platforms import limit_address_space, limit_processor_time
from nkitools.processes import Limits as ChildLimits
from nkitools.processes import PipedChild
from nkitools.record.run_listeners import attend_runs

# A test that waits takes no processor time: it ends after so many times its limit.
_PATIENCE = 5
_LATE = f"had not ended after {_PATIENCE} times the limit"


@dataclass(frozen=True)
class Limits:
    """The processor time and the memory that one test may take, and what watches it.

    ``watching``: a context around each test, which gets what is seen of it.
    """

    seconds: float  # of the processor; of the clock five times as many
    mib: int  # of memory, beyond what the session has taken to collect the suite
    watching: Callable[[Seen], AbstractContextManager[object]] = nullcontext

    def of_child(self) -> ChildLimits:
        """Return the limits by the clock and by memory, which a guard holds."""
        return ChildLimits(seconds=_PATIENCE * self.seconds, memory=self.mib * 2**20)


class _Process:
    """The process of one test."""

    def __init__(self, item: pytest.Item, limits: Limits) -> None:
        self._test = item.nodeid
        sys.stdout.flush()
        sys.stderr.flush()
        self._child = PipedChild(_run, item, limits, limits=limits.of_child())
        self.receiver = self._child.pipe

    def end(self) -> Outcome:
        """Return the outcome of the test, whose process has said it or is gone."""
        said: Outcome | None = None
        with suppress(EOFError):
            said = self.receiver.recv()
        end = self._child.wait()
        self.receiver.close()
        if said is not None or end is None:
            return said or Outcome(self._test, "died")
        if end.why == "time":
            return Outcome(self._test, "timeout", _LATE)
        if end.is_out_of_memory:
            return Outcome(self._test, "memory", end.words())
        if end.described == "SIGXCPU":
            return Outcome(self._test, "timeout", "took more of the processor's time than the limit")
        return Outcome(self._test, "died", end.words())


def outcomes(items: list[pytest.Item], limits: Limits, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of the tests as they come, ``jobs`` tests at a time."""
    waiting = iter(items)
    running: dict[Any, _Process] = {}  # by the ends of their pipes
    while True:
        while len(running) < jobs and (item := next(waiting, None)) is not None:
            process = _Process(item, limits)
            running[process.receiver] = process
        if not running:
            return
        for receiver in wait(list(running)):
            yield running.pop(receiver).end()


def outcomes_here(items: list[pytest.Item], limits: Limits) -> Iterator[Outcome]:
    """Yield the outcomes of tests that run in this process one by one.

    JAX's threads survive no fork, macOS has none, and tests are no pickles. A test beyond its limit ends the session,
    as JAX cannot be interrupted: before it begins it counts as such a one.
    """
    for item in items:
        yield Outcome(item.nodeid, "timeout", "the session ended in this test, or because it was late; see --resume")
        faulthandler.dump_traceback_later(_PATIENCE * limits.seconds, exit=True)
        yield _outcome(item, limits)
    faulthandler.cancel_dump_traceback_later()


def _run(item: pytest.Item, limits: Limits, sender: Any) -> None:
    """Run one test in this process, and send its outcome."""
    limit_processor_time(math.ceil(limits.seconds))
    outcome = _outcome(item, limits)
    limit_address_space(0)  # the outcome is still to be sent
    sender.send(outcome)


def _outcome(item: pytest.Item, limits: Limits) -> Outcome:
    """Run one test in this process, and return its outcome."""
    seen, began = Seen(Path.cwd()), time.process_time()
    plugin = _Exceptions(seen.failed)
    item.config.pluginmanager.register(plugin)
    try:
        with attend_runs(seen), limits.watching(seen):
            reports = runtestprotocol(item, log=False, nextitem=None)
    finally:
        item.config.pluginmanager.unregister(plugin)
    outcome = seen.outcome(item.nodeid, reports)
    outcome.seconds = round(time.process_time() - began, 2)
    return outcome


class _Exceptions:
    """The plugin that keeps the exceptions of a test's phases, which reports hold as text alone."""

    def __init__(self, keep: Callable[[BaseException], None]) -> None:
        self._keep = keep

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Keep the exception of one phase; pytest puts that of a `unittest.TestCase` there while it reports."""
        report = yield
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self._keep(call.excinfo.value)
        return report
