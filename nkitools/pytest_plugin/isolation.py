"""Tests on hardware run in a process made for the device: what ends that process fails one test, and pytest goes on.

The process is a pytest of its own (`worker`) that is asked for one test after the other, as long as they pass. After a
failure the next test gets a new one: a runtime may be poisoned by what failed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from nkitools import options
from nkitools.pytest_plugin.devices import missing_for
from nkitools.pytest_plugin.marks import needs_hardware

if TYPE_CHECKING:
    from nkitools.pytest_plugin.process import HardwareProcess

# Set in the process for hardware tests.
IN_WORKER = "NKITOOLS_HW_WORKER"


class Isolation:
    """Hands the tests that need hardware to a process of their own and brings their reports back."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker: HardwareProcess | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a hardware test in the other process; a test without a device is skipped in this one."""
        if not needs_hardware(item) or missing_for(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, _next_on_hardware(item, nextitem)):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_sessionfinish(self) -> None:
        """Let the fixtures of the other process be torn down."""
        self._end()

    def _reports(self, item: pytest.Item, following: pytest.Item | None) -> list[pytest.TestReport]:
        began = time.time()
        from nkitools.pytest_plugin.process import HardwareProcess, ProcessLost
        from nkitools.targets import devices

        try:
            if self._worker is None:
                items = [each for each in item.session.items if needs_hardware(each)]
                present = [device for device in devices() if device.available().ok]
                self._worker = HardwareProcess(self._config, items, present)
            reports = self._worker.run(item, following)
        except Exception as error:
            what = "cannot be given a process" if self._worker is None else "ended its process"
            self._end(at_once=True)
            return [_failed(item, f"{error}" if isinstance(error, ProcessLost) else f"{what}: {error!r}", began)]
        if following is None or any(report.failed for report in reports):
            self._end()
        return reports

    def _end(self, *, at_once: bool = False) -> None:
        if self._worker is not None:
            self._worker.end(at_once=at_once)
            self._worker = None


def isolates(config: pytest.Config) -> bool:
    """Whether hardware tests of this session get a process of their own."""
    if os.environ.get(IN_WORKER) or config.getoption("usepdb", False) or config.getoption("collectonly", False):
        return False
    return options.value("isolate") == "process" and os.name == "posix"


def _next_on_hardware(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.Item | None:
    """The next test for the other process: fixtures that both share live on between them."""
    if nextitem is None:
        return None
    items: Iterator[pytest.Item] = iter(item.session.items)
    for each in items:
        if each is item:
            break
    return next((each for each in items if needs_hardware(each) and not missing_for(each)), None)


def _failed(item: pytest.Item, why: str, began: float) -> pytest.TestReport:
    now = time.time()
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr=why,
        when="call",
        duration=now - began,
        start=began,
        stop=now,
    )
