"""The process for hardware tests, seen from the pytest that asks it: begun, asked, awaited, ended."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nkitools import options
from nkitools.pytest_plugin.benchmarks import replay
from nkitools.pytest_plugin.isolation import IN_WORKER

if TYPE_CHECKING:
    from nkitools.targets import Device

# What only the process that the user started writes or shows.
_OF_THE_MAIN_PROCESS: dict[str, object] = {
    "benchmark_json": None,
    "benchmark_save": None,
    "benchmark_autosave": None,
    "benchmark_compare": None,
    "benchmark_compare_fail": None,
    "benchmark_histogram": None,
    "htmlpath": None,
    "report_log": None,
    "xmlpath": None,
    "cacheclear": False,
    # What Python and the runtime write goes to the log at once, for a crash; what Python writes is in the report too.
    "capture": "tee-sys",
    "collectonly": False,
    "deselect": None,
    "dist": "no",
    "failedfirst": False,
    "keyword": "",
    "lf": False,
    "looponfail": False,
    "markexpr": "",
    "maxfail": 0,
    "newfirst": False,
    "numprocesses": None,
    "stepwise": False,
    "stepwise_skip": False,
    "tx": [],
    "usepdb": False,
}
_SCRIPT = str(Path(__file__).with_name("worker.py"))
_GRACE_SECONDS = 5
_DUMP_SECONDS = 0.5
# What a dump of all stacks holds beside the author's frames.
_OF_PYTEST = re.compile(r'File ".*(_pytest|pluggy|nkitools/pytest_plugin)/|<frozen runpy>|^Extension modules: ')
_MOST_LINES = 40


class ProcessLost(Exception):
    """The process of a hardware test ended, hung, or could not begin."""


class HardwareProcess:
    """The other process, and the units of devices that it has."""

    def __init__(
        self, config: pytest.Config, items: list[pytest.Item], devices: Sequence[Device], **said: object
    ) -> None:
        from nkitools.targets.units import units_of

        self._config = config
        self._patience = _seconds(str(options.value("timeout")))
        self._held = ExitStack()
        self._log = self._held.enter_context(_log_file())
        with contextlib.ExitStack() as undone:
            undone.callback(self._held.close)
            environment = self._held.enter_context(units_of(devices, self._patience))
            self._connection, self._process = self._start(environment)
            self._send(_configuration(config, items, said))
            collected = self._receive(time.monotonic() + self._patience)
            if collected != ("ready",):
                raise ProcessLost(f"the process for hardware tests could not collect them:\n{self._last_words()}")
            undone.pop_all()

    def run(self, item: pytest.Item, following: pytest.Item | None) -> list[pytest.TestReport]:
        """The reports of one test. Raises `ProcessLost` where the process ends or hangs on the way."""
        until = time.monotonic() + self._patience
        self._log.seek(0)
        self._log.truncate()
        self._send(("run", item.nodeid, None if following is None else following.nodeid))
        reports = []
        while (message := self._receive(until, item.nodeid))[0] != "done":
            if message[0] == "report":
                reports.append(self._config.hook.pytest_report_from_serializable(config=self._config, data=message[1]))
            elif message[0] == "benchmarks":
                replay(self._config, message[1])
        return reports

    def end(self, *, at_once: bool = False) -> None:
        """End the process, by asking it where there is time."""
        if not at_once:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._send(("stop",))
                self._process.wait(_GRACE_SECONDS + self._patience)
        self._kill()
        self._connection.close()
        self._held.close()

    def _start(self, environment: Any) -> tuple[Connection, subprocess.Popen[str]]:
        here, there = Pipe()
        # A group of its own: a compiler that it started must end with it.
        process = subprocess.Popen(
            [sys.executable, _SCRIPT, str(there.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=None if self._config.getoption("capture") == "no" else self._log,
            stderr=self._log,
            env={**os.environ, **environment, IN_WORKER: "1"},
            cwd=self._config.invocation_params.dir,
            pass_fds=(there.fileno(),),
            start_new_session=True,
            text=True,
        )
        there.close()
        return here, process

    def _send(self, message: Any) -> None:
        self._connection.send_bytes(pickle.dumps(message))

    def _receive(self, until: float, nodeid: str = "") -> tuple[Any, ...]:
        try:
            if not self._connection.poll(max(0.0, until - time.monotonic())):
                raise ProcessLost(self._hung(nodeid))
            message: tuple[Any, ...] = pickle.loads(self._connection.recv_bytes())
        except (EOFError, ConnectionError):
            raise ProcessLost(self._crashed()) from None
        return message

    def _hung(self, nodeid: str) -> str:
        # The process writes where each of its threads stands (faulthandler), unless it is stuck in the kernel.
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        time.sleep(_DUMP_SECONDS)
        what = f"did not end within {self._patience:g} s" if nodeid else f"was not ready within {self._patience:g} s"
        return f"hung: the process on the device {what} (--nki-timeout). Where it stands:\n{self._last_words()}"

    def _crashed(self) -> str:
        status = self._process.wait()
        how = f"ended with exit status {status}"
        if status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        return f"crashed: the process on the device {how}. Its last words:\n{self._last_words()}"

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line and not _OF_PYTEST.search(line)]
        return "\n".join(lines[-_MOST_LINES:]) or "(none)"

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def _log_file() -> Iterator[Any]:
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        yield file


def _configuration(config: pytest.Config, items: list[pytest.Item], own: dict[str, object]) -> tuple[Any, ...]:
    """What the other pytest needs to collect the same tests under the same options."""
    said = {name: value for name, value in vars(config.option).items() if _can_be_sent(value)}
    said.pop("file_or_dir", None)
    known = {name: value for name, value in _OF_THE_MAIN_PROCESS.items() if name in said}
    if said["capture"] == "no":
        known["capture"] = "no"
    inifile = {} if config.inipath is None else {"inifilename": str(config.inipath)}
    files = list(dict.fromkeys(str(item.path) for item in items))
    return ("collect", {**said, **known, **inifile, "rootdir": str(config.rootpath), **own}, files, sys.path)


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
