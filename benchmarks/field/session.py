"""The pytest plugin of one session: which tests of a suite are run, and how their outcomes are gathered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.field.outcomes import GOOD, Outcome
from benchmarks.field.processes import Limits, outcomes


@dataclass(frozen=True)
class Choice:
    """Which tests are run: those of the ``sample``, or all where it is empty, but for those in ``known``.

    ``collects_all``: files without a test of the sample are collected, too. Some suites draw the cases of all files
    from one generator, so that a file alone has others.
    """

    sample: Collection[str] = ()
    known: Collection[Outcome] = ()  # of an earlier session, which are not run again
    collects_all: bool = False


class Field:
    """The tests of a suite, run in processes, in place of pytest's own loop.

    ``keep``: is called with this object after each outcome, so that a session that is ended has not run in vain.
    """

    def __init__(self, limits: Limits, jobs: int, choice: Choice, keep: Callable[[Field], None]) -> None:
        self.found: list[Outcome] = list(choice.known)
        self.uncollected: list[str] = []  # files that could not be imported, with the reason
        self._limits = limits
        self._jobs = jobs
        self._sample = choice.sample
        self._known = {outcome.test for outcome in choice.known}
        self._files = () if choice.collects_all else {test.partition("::")[0] for test in choice.sample}
        self._keep = keep

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out the files that have no test in the sample."""
        if not self._files or collection_path.is_dir():
            return None
        inside = collection_path.is_relative_to(config.rootpath)
        return not (inside and str(collection_path.relative_to(config.rootpath)) in self._files) or None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that are to be run, and note those of the sample that are not there."""
        there = {item.nodeid for item in items}
        wanted = (set(self._sample) or there) - self._known
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]
        self.found += [Outcome(test, "absent", "the suite has no such test") for test in sorted(wanted - there)]

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
            self._keep(self)
            session.testsfailed += outcome.kind not in GOOD
            if sys.stderr.isatty():
                print(f"\r{len(self.found)} of {len(session.items)} tests", end="", file=sys.stderr)
        return True
