"""Runs hardware tests in a process made for the device: if that process ends, one test fails, and pytest goes on.

The process is another pytest (`worker`) that runs one test after the other, as long as they pass. After a failure the
next test gets a new process, since the failure may have damaged the runtime.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.devices import missing_for
from nkitools.pytest_plugin.marks import IN_WORKER, needs_hardware

if TYPE_CHECKING:
    from nkitools.pytest_plugin.process import HardwareProcess


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
        for report in [*self._reports(item, _next_on_hardware(item, nextitem)), *_torn_down(item, nextitem)]:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tear down the fixtures of the other process, before other plugins write their last lines."""
        self._end()

    def _reports(self, item: pytest.Item, following: pytest.Item | None) -> list[pytest.TestReport]:
        began = time.time()
        from nkitools.pytest_plugin.process import OtherProcess, ProcessLost
        from nkitools.targets.units import DeviceBusy

        try:
            try:
                reports = self._process(item).run(item, following)
            except OtherProcess as other:
                self._end()
                reports = self._process(item, other.degree).run(item, following)
        except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
            if self._worker is not None:
                self._worker.interrupt()
                self._worker = None
            raise
        except Exception as error:
            what = "cannot be given a process" if self._worker is None else "ended its process"
            self._end(at_once=True)
            said = isinstance(error, ProcessLost | DeviceBusy | OtherProcess)
            told = f"{error}" if said else f"{what}: {error!r}"
            return _failed(item, told, began, getattr(error, "reports", []))
        is_wanted = self._worker is not None and (self._worker.is_poisoned or self._worker.is_wanted)
        if following is None or any(report.failed for report in reports) or is_wanted:
            self._end()
        return reports

    def _process(self, item: pytest.Item, degree: int | None = None) -> HardwareProcess:
        """Return the process; start it if there is none."""
        from nkitools.pytest_plugin.process import HardwareProcess
        from nkitools.targets import devices

        if self._worker is None:
            items = [each for each in item.session.items if needs_hardware(each)]
            present = [device for device in devices() if device.available().ok]
            self._worker = HardwareProcess(self._config, items, present, degree)
        return self._worker

    def _end(self, *, at_once: bool = False) -> None:
        if self._worker is not None:
            self._worker.end(at_once=at_once)
            self._worker = None


def isolates(config: pytest.Config) -> bool:
    """Return whether hardware tests of this session get a process of their own."""
    if os.environ.get(IN_WORKER) or config.getoption("usepdb", False) or config.getoption("collectonly", False):
        return False
    return options.value("isolate") == "process"


def _next_on_hardware(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.Item | None:
    """Return the next test for the other process: fixtures that both share live on between them."""
    if nextitem is None:
        return None
    items: Iterator[pytest.Item] = iter(item.session.items)
    for each in items:
        if each is item:
            break
    return next((each for each in items if needs_hardware(each) and not missing_for(each)), None)


def _torn_down(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Tear down set-ups of earlier tests in this process that ``nextitem`` does not need, as pytest would."""
    state = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
    return [item.ihook.pytest_runtest_makereport(item=item, call=call)] if call.excinfo else []


def _failed(item: pytest.Item, why: str, began: float, before: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """Return the reports ``before`` the loss of the process, a failure for its phase, and those of later phases."""
    reports = list(before) or [_report(item, "setup", began)]
    reports.append(_report(item, "teardown" if reports[-1].when == "call" else "call", began, why))
    if reports[-1].when == "call":
        reports.append(_report(item, "teardown", time.time()))
    return reports


def _report(
    item: pytest.Item, when: Literal["setup", "call", "teardown"], began: float, why: str = ""
) -> pytest.TestReport:
    now = time.time()
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed" if why else "passed",
        longrepr=why or None,
        when=when,
        duration=now - began if why else 0,
        start=began,
        stop=now,
        user_properties=item.user_properties,
    )
