"""The process for hardware tests: a pytest that runs the tests it is asked for, one by one (`isolation` asks).

Run as a script: to import nkitools before pytest does would keep pytest from rewriting its assertions, with a warning.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import pytest


class Worker:
    """Takes the place of pytest's loop over all tests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._config: pytest.Config

    def send(self, *message: Any) -> None:
        """Tell the process that asks."""
        self._connection.send_bytes(pickle.dumps(message))

    def receive(self) -> tuple[Any, ...]:
        """What it asks for; to stop where it is gone."""
        try:
            message: tuple[Any, ...] = pickle.loads(self._connection.recv_bytes())
        except EOFError:
            return ("stop",)
        return message

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what is asked for."""
        from nkitools.pytest_plugin.benchmarks import measured

        self._config = session.config
        by_id = {item.nodeid: item for item in session.items}
        self.send("ready")
        while (message := self.receive())[0] == "run":
            _, nodeid, following = message
            before = measured(session.config)
            item = by_id[nodeid]
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=by_id.get(following))
            self.send("benchmarks", measured(session.config)[len(before) :])
            self.send("done")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand each report on."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.send("report", data)


def main() -> None:
    """The connection is the file descriptor in the arguments; the first message says what to collect."""
    log = os.dup(2)  # pytest may put something else in the place of stderr
    faulthandler.enable(log)
    faulthandler.register(signal.SIGUSR1, log, all_threads=True)
    worker = Worker(Connection(int(sys.argv[1])))
    _, option, files, path = worker.receive()
    sys.path[:] = path
    option["plugins"] = [*option.get("plugins", []), "no:terminal"]
    config = pytest.Config.fromdictargs(option, files)
    config.args = files
    config.pluginmanager.register(worker, "nkitools-hardware-worker")
    config.hook.pytest_cmdline_main(config=config)


if __name__ == "__main__":
    main()
