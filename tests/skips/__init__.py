"""``--skips FILE``: a test that is skipped for another reason than those in FILE fails the session.

FILE has a regular expression a line, for the whole reason; `#` begins a comment. Each job of ``.github/workflows``
that runs tests names its own list, so that a package that was not installed is noticed. The end of every session says
what was not tested (`not_tested`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.skips.not_tested import NotTested


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--skips", type=Path, metavar="FILE", help="fail if a test is skipped for a reason not in FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the reports, in the process that has all of them."""
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(NotTested(config.rootpath), "not-tested")
    path = config.getoption("--skips")
    if path is not None:
        config.pluginmanager.register(UnlistedSkips(path), "unlisted-skips")


class UnlistedSkips:
    """Collects what was skipped and is not on the list."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
        self._listed = [re.compile(line) for line in lines if line]
        self._found: dict[str, str] = {}  # by reason, the first test that has it

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at a test; an expected failure is no skip."""
        if not hasattr(report, "wasxfail"):
            self._look_at(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Look at a file of tests."""
        self._look_at(report)

    def _look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not any(each.fullmatch(reason) for each in self._listed):
                self._found.setdefault(reason, report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a session that has passed otherwise."""
        if self._found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the reasons."""
        for reason, nodeid in self._found.items():
            terminalreporter.write_line(f"skipped, and not in {self._path.name}: {reason} ({nodeid})", red=True)
