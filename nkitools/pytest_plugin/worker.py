"""The process for hardware tests: a pytest that runs the tests it is asked for, one by one (`isolation` asks).

Run as a script: to import nkitools before pytest does would keep pytest from rewriting its assertions, with a warning.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest


class Worker:
    """Takes the place of pytest's loop over all tests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._config: pytest.Config
        self._not_collected: dict[str, str] = {}

    def send(self, *message: Any) -> None:
        """Send a message to the asking process."""
        self._connection.send_bytes(pickle.dumps(message))

    def receive(self) -> tuple[Any, ...]:
        """Return the next request of the main process; a request to stop if it is gone."""
        try:
            message: tuple[Any, ...] = pickle.loads(self._connection.recv_bytes())
        except EOFError:
            return ("stop",)
        return message

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file has no tests: under AWS's packages it may import what in simulation it does not."""
        if report.failed:
            self._not_collected[report.nodeid] = report.longreprtext

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what is asked for."""
        self._config = session.config
        by_id = {item.nodeid: item for item in session.items}
        self.send("ready")
        expected = None
        while (message := self.receive())[0] == "run":
            _, nodeid, following = message
            item = by_id.get(nodeid)
            if item is None:
                self.send("absent", self._why_absent(nodeid))
                continue
            if item is not expected:  # what lives on for another test must end before this one begins
                session._setupstate.teardown_exact(item)
            expected = by_id.get(following)
            self._run(item, expected)
        return True

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        from nkitools.facts.kept import forget_many
        from nkitools.pytest_plugin.benchmarks import measured
        from nkitools.pytest_plugin.devices import ASKED_DEGREE, IS_POISONED

        before = len(measured(self._config))
        self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        degree = self._config.stash.get(ASKED_DEGREE, None)
        if degree is not None:
            self.send("degree", degree)
        if self._config.stash.get(IS_POISONED, False):
            self.send("poisoned")
        forget_many()
        self.send("benchmarks", measured(self._config)[before:])
        self.send("done")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Wait for the device at the end of a test: an error of its launches must not come out of the next test."""
        result = yield
        _wait_for_device()
        return result

    def _why_absent(self, nodeid: str) -> str:
        whys = [why for of, why in self._not_collected.items() if not of or nodeid.startswith(of)]
        return "\n".join(whys) or (
            "no test of that name was collected there: parameters of a test must have the same ids in each process"
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand each report on."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.send("report", data)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        """Hand each warning of a test on, in words: its class may be one that only this process can import."""
        if when == "runtest":
            words = f"{warning_message.message}"
            kind = warning_message.category.__name__
            self.send("warning", kind, words, warning_message.filename, warning_message.lineno, nodeid, location)


def _wait_for_device() -> None:
    """Wait for the launches of torch's native backend, which are asynchronous, where a test has imported that."""
    synchronize = getattr(getattr(sys.modules.get("torch"), "neuron", None), "synchronize", None)
    if synchronize is not None:
        synchronize()


def main() -> None:
    """Two file descriptors are in the arguments, of the log for crashes and of the connection.

    The first message says what to collect.
    """
    sys.path.insert(0, str(Path(__file__).parents[1]))  # nkitools itself is not to be imported yet
    platforms = importlib.import_module("platforms")
    del sys.modules["platforms"]  # a module of the author's may have the name
    log, connection = map(int, sys.argv[1:3])
    for file in (connection, log):  # a compiler that outlives this process would keep them open
        os.set_inheritable(file, False)
    faulthandler.enable(log)
    platforms.answers_for_stacks(log)
    worker = Worker(Connection(connection))
    _, option, files, path = worker.receive()
    sys.path[:] = path
    # On the command line too, so that they are loaded before the first conftest.py, as the user's were.
    plugins = [*option.get("plugins", []), "no:terminal"]
    try:
        flags = [part for plugin in plugins for part in ("-p", plugin)]
        config = pytest.Config.fromdictargs({**option, "plugins": plugins}, [*flags, *files])
        config.args = files
        config.pluginmanager.register(worker, "nkitools-hardware-worker")
    except Exception as error:  # any: a conftest.py may raise what it likes
        worker.send("unable", "".join(traceback.format_exception(error.__cause__ or error)))
        return
    config.hook.pytest_cmdline_main(config=config)


if __name__ == "__main__":
    main()
