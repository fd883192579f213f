"""The pytest plugin of one session: which tests of a suite are run, and how their outcomes are gathered."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from benchmarks.field.outcomes import GOOD, Outcome
from benchmarks.field.processes import Limits, outcomes


class Field:
    """The tests of a suite, run in processes, in place of pytest's own loop."""

    def __init__(self, limits: Limits, jobs: int, sample: Collection[str]) -> None:
        self.found: list[Outcome] = []
        self.uncollected: list[str] = []  # files that could not be imported, with the reason
        self._limits = limits
        self._jobs = jobs
        self._sample = sample
        self._files = {test.partition("::")[0] for test in sample}

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out the files that have no test in the sample."""
        if not self._files or collection_path.is_dir():
            return None
        inside = collection_path.is_relative_to(config.rootpath)
        return not (inside and str(collection_path.relative_to(config.rootpath)) in self._files) or None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the sample, where there is one."""
        if not self._sample:
            return
        left_out = [item for item in items if item.nodeid not in self._sample]
        items[:] = [item for item in items if item.nodeid in self._sample]
        config.hook.pytest_deselected(items=left_out)
        absent = set(self._sample) - {item.nodeid for item in items}
        self.found += [Outcome(test, "absent", "the suite has no such test") for test in sorted(absent)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the files that cannot be collected."""
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.uncollected.append(f"{report.nodeid}: {lines[-1].removeprefix('E').strip() if lines else ''}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests, each in a process of its own."""
        for outcome in outcomes(session.items, self._limits, self._jobs):
            self.found.append(outcome)
            session.testsfailed += outcome.kind not in GOOD
            if sys.stderr.isatty():
                print(f"\r{len(self.found)} of {len(session.items)} tests", end="", file=sys.stderr)
        return True
