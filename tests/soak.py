"""The full counts of property and fuzz tests (``make soak``), which can be stopped and resumed.

A test that has passed at a commit is not run again there: ``.soak/passed`` keeps the ids, below the commit.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import cases

_PASSED = pytest.StashKey["PassedTests"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for the full counts."""
    parser.addoption("--soak", action="store_true", help="run property and fuzz tests with all of their cases")


@pytest.hookimpl(tryfirst=True)  # before Hypothesis loads the profile that its own option names
def pytest_configure(config: pytest.Config) -> None:
    """Settle the counts before tests are imported, and begin or resume a soak."""
    cases.FULL = config.getoption("--soak")
    # A busy machine is no reason for a test to fail. All else stays as Hypothesis chooses it, for CI too.
    settings.register_profile("patient", settings(), deadline=None, max_examples=cases.cases(1000))
    settings.load_profile("patient")
    if cases.FULL:
        config.stash[_PASSED] = PassedTests(config.rootpath, writes=not hasattr(config, "workerinput"))
        config.pluginmanager.register(config.stash[_PASSED], "soak-passed")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every Hypothesis test, whose number of examples depends on the option."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("soak")


class PassedTests:
    """The ids of the tests that have passed their full counts at this commit."""

    def __init__(self, root: Path, *, writes: bool) -> None:
        self.file = root / ".soak" / "passed"
        self.writes = writes  # one process of several keeps the file
        self.commit = commit_of(root)
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else []
        self.ids = set(lines[1:]) if lines[:1] == [self.commit] else set()
        if writes and not self.ids:
            self.file.parent.mkdir(exist_ok=True)
            self.file.write_text(f"{self.commit}\n", encoding="utf-8")

    def pytest_report_header(self) -> str:
        """Return the line that says what is resumed."""
        return f"soak: {len(self.ids)} tests have passed at this commit and are left out"

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has passed."""
        done = [item for item in items if item.nodeid in self.ids]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self.ids]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the id of a test that passes."""
        if self.writes and report.when == "call" and report.passed:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: Any) -> None:
        """Call it a success where nothing was left to run."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.ids:
            session.exitstatus = pytest.ExitCode.OK


def commit_of(root: Path) -> str:
    """Return the commit in ``root``, with a digest of what differs from it."""
    told = [_git(root, "rev-parse", "HEAD"), _git(root, "diff", "HEAD")]
    return f"{told[0].decode().strip()} {hashlib.sha256(told[1]).hexdigest()[:12]}"


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False).stdout
