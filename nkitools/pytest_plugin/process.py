"""The process for hardware tests, seen from the pytest that asks it: begun, asked, awaited, ended."""

from __future__ import annotations

import builtins
import contextlib
import itertools
import os
import pickle
import re
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.dialects.torch_autoload import outside_environment
from nkitools.facts import options
from nkitools.processes import AnsweringChild, End, Lost, TimedOut, log_file, text_of
from nkitools.pytest_plugin.benchmarks import replay
from nkitools.pytest_plugin.failure_codes import explained
from nkitools.pytest_plugin.marks import IN_WORKER

if TYPE_CHECKING:
    from nkitools.targets import Device

# Outputs that only the process of the user writes or shows, and the flags that switch them off in the other.
_OF_THE_MAIN_PROCESS: dict[str, object] = {
    **dict.fromkeys(("benchmark_json", "benchmark_save", "benchmark_autosave", "benchmark_compare")),
    **dict.fromkeys(("benchmark_compare_fail", "benchmark_histogram", "htmlpath", "report_log", "xmlpath")),
    **dict.fromkeys(("debug", "deselect", "numprocesses")),
    **dict.fromkeys(("cacheclear", "collectonly", "failedfirst", "lf", "looponfail", "newfirst"), False),
    **dict.fromkeys(("stepwise", "stepwise_skip", "usepdb"), False),
    # What Python and the runtime write goes to the log at once, for a crash; what Python writes is in the report too.
    "capture": "tee-sys",
    "dist": "no",
    "keyword": "",
    "log_file": os.devnull,
    "markexpr": "",
    "maxfail": 0,
    "no_cov": True,
    "tx": [],
}
_SCRIPT = str(Path(__file__).with_name("worker.py"))
_GRACE_SECONDS = 5
# What the process may need at least to begin, whatever a test may take: frameworks are slow to import.
_START_SECONDS = 120
# How long a process keeps a device that others wait for.
_TURN_SECONDS = 10
_DUMP_SECONDS = 0.5
# What a dump of all stacks holds beside the author's frames.
_OF_PYTEST = re.compile(r'File ".*(_pytest|pluggy|nkitools/pytest_plugin)/|<frozen runpy>|^Extension modules: ')
_MOST_LINES = 40
_numbers = itertools.count()


class ProcessLost(Exception):
    """The process of a hardware test ended, hung, or could not begin; ``reports``: the earlier reports."""

    def __init__(self, message: str, reports: Sequence[pytest.TestReport] = ()) -> None:
        super().__init__(message)
        self.reports = list(reports)


class OtherProcess(Exception):
    """A test must run in a process of another ``degree``."""

    def __init__(self, degree: int) -> None:
        super().__init__(f"it calls kernels of two degrees, and a process has one: {degree}, or the other")
        self.degree = degree


class HardwareProcess:
    """The other process and its units of devices; ``degree``: the LNC degree that a kernel asked for."""

    def __init__(
        self,
        config: pytest.Config,
        items: list[pytest.Item],
        devices: Sequence[Device],
        degree: int | None = None,
        **said: str,
    ) -> None:
        from nkitools.targets.units import units_of

        self._config = config
        self._devices = devices = [device.of_degree(degree) for device in devices]
        self._asked: int | None = None
        self.is_poisoned = False
        self._patience = _seconds(str(options.value("timeout")))
        self._held = ExitStack()
        self._log = self._held.enter_context(log_file())
        with contextlib.ExitStack() as undone:
            undone.callback(self._held.close)
            environment = self._held.enter_context(units_of(devices, self._patience))
            self._began = time.monotonic()
            self._process = self._start(environment)
            undone.callback(self._process.close)
            self._send(_configuration(config, items, said))
            collected = self._receive(self._began + max(self._patience, _START_SECONDS))
            if collected[0] != "ready":
                raise ProcessLost(f"the process for hardware tests could not begin:\n{_of_the_author(collected[1])}")
            undone.pop_all()

    def run(self, item: pytest.Item, following: pytest.Item | None) -> list[pytest.TestReport]:
        """Return the reports of one test.

        Raises `ProcessLost` if the process ends or hangs on the way, `OtherProcess` if its degree is not that of the
        test's kernel.
        """
        until = time.monotonic() + self._patience
        self._log.seek(0)
        self._log.truncate()
        reports: list[pytest.TestReport] = []
        try:
            self._send(("run", item.nodeid, None if following is None else following.nodeid))
            while (message := self._receive(until, item.nodeid))[0] != "done":
                self._take(message, reports)
        except ProcessLost as lost:
            lost.reports = reports
            raise
        if self._asked is not None:
            raise OtherProcess(self._asked)
        return reports

    def _take(self, message: tuple[Any, ...], reports: list[pytest.TestReport]) -> None:
        kind, *said = message
        if kind == "report":
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=said[0])
            if report.failed:
                report.sections += self._unheard(report)
                report.sections += explained(report)
            reports.append(report)
        elif kind == "benchmarks":
            replay(self._config, said[0])
        elif kind == "degree":
            self._asked = said[0]
        elif kind == "poisoned":
            self.is_poisoned = True
        elif kind == "warning":
            _warn(self._config, *said)
        elif kind == "absent":
            raise ProcessLost(f"the process for hardware tests could not collect it:\n{said[0]}")

    def _unheard(self, report: pytest.TestReport) -> list[tuple[str, str]]:
        """Return the output of compilers and the runtime that bypassed Python and so pytest's capture."""
        heard = set((report.capstdout + report.capstderr).splitlines())
        lines = [line for line in self._words() if line not in heard]
        return [("Written by the process on the device", "\n".join(lines[-_MOST_LINES:]))] if lines else []

    @property
    def is_wanted(self) -> bool:
        """Return whether the process has had its turn while other processes wait for its devices."""
        from nkitools.targets.units import is_waited_for

        return time.monotonic() > self._began + _TURN_SECONDS and any(map(is_waited_for, self._devices))

    def interrupt(self) -> None:
        """End the process as Ctrl-C would: fixtures are torn down, if that does not take long."""
        self._process.interrupt()
        self._process.wait(_GRACE_SECONDS)
        self.end(at_once=True)

    def end(self, *, at_once: bool = False) -> None:
        """End the process; ask it first unless ``at_once``."""
        if not at_once:
            with contextlib.suppress(ProcessLost):
                self._send(("stop",))
                self._process.wait(_GRACE_SECONDS + self._patience)
        self._process.close()
        self._held.close()

    def _start(self, environment: Any) -> AnsweringChild:
        hidden = {name for device in self._devices for name in device.hidden}
        outside = {name: value for name, value in outside_environment().items() if name not in hidden}
        # Unbuffered: what Python has printed before a crash is in the log, and under -s it comes out in the order in
        # which it and the runtime write.
        return AnsweringChild(
            [sys.executable, "-u", _SCRIPT, str(self._log.fileno())],
            stdout=None if _shows_all(self._config) else self._log,
            stderr=None if _shows_all(self._config) else self._log,
            env={**outside, **environment, IN_WORKER: "1"},
            cwd=self._config.invocation_params.dir,
            pass_fds=(self._log.fileno(),),
        )

    def _send(self, message: Any) -> None:
        try:
            self._process.send(message)
        except Lost:
            raise ProcessLost(self._crashed()) from None

    def _receive(self, until: float, nodeid: str = "") -> tuple[Any, ...]:
        try:
            message: tuple[Any, ...] = self._process.receive(max(0.0, until - time.monotonic()))
        except TimedOut:
            raise ProcessLost(self._hung(nodeid)) from None
        except Lost:
            raise ProcessLost(self._crashed()) from None
        return message

    def _hung(self, nodeid: str) -> str:
        # The process writes where each of its threads stands (faulthandler), unless it is stuck in the kernel.
        self._process.ask_for_stacks()
        time.sleep(_DUMP_SECONDS)
        what = f"did not end within {self._patience:g} s" if nodeid else f"was not ready within {self._patience:g} s"
        return f"hung: the process on the device {what} (--nki-timeout). Where it stands:\n{self._last_words()}"

    def _crashed(self) -> str:
        end = self._process.wait(_GRACE_SECONDS) or End(-9)
        how = f"{'was ended by' if end.status < 0 else 'ended with'} {end.described}"
        return f"crashed: the process on the device {how}. Its last words:\n{self._last_words()}"

    def _last_words(self) -> str:
        return "\n".join(self._words()[-_MOST_LINES:]) or "(none)"

    def _words(self) -> list[str]:
        return _of_the_author(text_of(self._log)).splitlines()


def _configuration(config: pytest.Config, items: list[pytest.Item], own: dict[str, str]) -> tuple[Any, ...]:
    """Return the configuration with which the other pytest collects the same tests under the same options."""
    said = {name: value for name, value in vars(config.option).items() if _can_be_sent(value)}
    said.pop("file_or_dir", None)
    known = {name: value for name, value in _OF_THE_MAIN_PROCESS.items() if name in said}
    if _shows_all(config):
        known["capture"] = "no"
    inifile = {} if config.inipath is None else {"inifilename": str(config.inipath)}
    files = list(dict.fromkeys(str(item.path) for item in items))
    places = {"rootdir": str(config.rootpath), "basetemp": _temporary(config)}
    return ("collect", {**said, **known, **inifile, **places, **own}, files, sys.path)


def _shows_all(config: pytest.Config) -> bool:
    return bool(config.getoption("capture", "no") == "no")


def _temporary(config: pytest.Config) -> str | None:
    """Return a directory for tmp_path below the session's, as in pytest-xdist: each process empties its own."""
    factory: Any = getattr(config, "_tmp_path_factory", None)
    return None if factory is None else str(factory.getbasetemp() / f"hw{next(_numbers)}")


def _of_the_author(text: str) -> str:
    """Without blank lines and pytest's own frames."""
    return "\n".join(line for line in text.splitlines() if line and not _OF_PYTEST.search(line))


def _warn(config: pytest.Config, kind: str, words: str, file: str, line: int, nodeid: str, location: Any) -> None:
    """Add a warning of the other process to this process's summary."""
    known = getattr(builtins, kind, None)
    category = known if isinstance(known, type) and issubclass(known, Warning) else UserWarning
    message = category(words if category is known else f"{kind}: {words}")
    told = warnings.WarningMessage(message, category, file, line)
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={"warning_message": told, "when": "runtest", "nodeid": nodeid, "location": location}
    )


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise pytest.UsageError(f"--nki-timeout is {text!r}; it is a number of seconds above 0")
    return seconds
