"""What a session leaves for the passes of continuous integration: how many tests passed and failed, which were skipped.

It stands in pytest's own cache, below ``nkitools/results``. ``--skipped-in FILE`` runs what the session that left FILE
has skipped, and the tests that import PyTorch or JAX, which behave otherwise where an optional package is there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

KEY = "nkitools/results"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--skipped-in", type=Path, metavar="FILE", help="run what the session that left FILE has skipped")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the reports, in the process that has all of them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SessionResults(), "session-results")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the other session has run."""
    results = config.getoption("--skipped-in")
    if results is None:
        return
    skipped = set(json.loads(results.read_text(encoding="utf-8"))["skipped"])

    def is_wanted(item: pytest.Item) -> bool:
        ways = {item.nodeid, item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]}
        return bool(ways & skipped) or item.get_closest_marker("frameworks") is not None

    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = [item for item in items if is_wanted(item)]


class SessionResults:
    """Counts reports as pytest's last line does."""

    def __init__(self) -> None:
        self.passed = self.failed = 0
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, or the error of its setup or teardown."""
        if report.failed:
            self.failed += 1
        elif report.skipped:
            self.skipped.append(report.nodeid)
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported, or that leaves itself out."""
        self.failed += report.failed
        if report.skipped:
            self.skipped.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results."""
        cache = getattr(session.config, "cache", None)
        if cache is not None:
            cache.set(KEY, {"passed": self.passed, "failed": self.failed, "skipped": self.skipped})
