"""The pytest plugin of one session: which tests of a suite are run, and how their outcomes are gathered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nkitools.field.file_command import modules_in
from nkitools.field.outcomes import GOOD, Outcome
from nkitools.field.processes import Limits, outcomes, outcomes_here
from nkitools.field.scripts import ScriptFile, Uncalled, script_in
from nkitools.platforms import workers_context


@dataclass(frozen=True)
class Choice:
    """The tests to run: those of the ``sample``, or all where it is empty, but for those in ``known``.

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
        self._found = {outcome.test: outcome for outcome in choice.known}
        self.uncollected: list[str] = []  # files that could not be imported, with the reason
        self._limits = limits
        self._jobs = jobs
        self._sample = choice.sample
        self._known = {outcome.test for outcome in choice.known}
        self._files = () if choice.collects_all else {test.partition("::")[0] for test in choice.sample}
        self._keep = keep
        self._imported: set[str] = set()  # the names in the import statements of all files

    @property
    def found(self) -> list[Outcome]:
        """The outcomes so far."""
        return list(self._found.values())

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave out the files that have no test in the sample."""
        if not self._files or collection_path.is_dir():
            return None
        inside = collection_path.is_relative_to(config.rootpath)
        return not (inside and str(collection_path.relative_to(config.rootpath)) in self._files) or None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> ScriptFile | None:
        """Collect scripts, and files of kernels, where pytest finds no tests."""
        self._imported |= modules_in(file_path)
        return script_in(file_path, parent)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that are to be run, and note those of the sample that are not there."""
        called = [item for item in items if not (isinstance(item, Uncalled) and item.path.stem in self._imported)]
        there = {item.nodeid for item in called}
        wanted = (set(self._sample) or there) - self._known
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in called if item.nodeid in wanted]
        for test in sorted(wanted - there):
            self._found[test] = Outcome(test, "absent", "the suite has no such test")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Report a file that ends the process when it is imported as one that cannot be collected."""
        try:
            return (yield)
        except SystemExit as ending:
            why = f"SystemExit: {ending}: put what a script does below `if __name__ == '__main__':`"
            return pytest.CollectReport(collector.nodeid, "failed", why, [])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the files that cannot be collected."""
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.uncollected.append(f"{report.nodeid}: {lines[-1].removeprefix('E').strip() if lines else ''}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests, each in a process of its own where that can be."""
        for outcome in self._outcomes(session.items):
            self._found[outcome.test] = outcome
            self._keep(self)
            if sys.stderr.isatty():
                print(f"\r{len(self._found)} of {len(session.items)} tests", end="", file=sys.stderr)
        session.testsfailed += sum(outcome.kind not in GOOD for outcome in self._found.values())
        return True

    def _outcomes(self, items: list[pytest.Item]) -> Iterator[Outcome]:
        is_fork = workers_context(has_threads="jax" in sys.modules).get_start_method() == "fork"
        return outcomes(items, self._limits, self._jobs) if is_fork else outcomes_here(items, self._limits)
