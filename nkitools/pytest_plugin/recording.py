"""The record of a test: every run in the test, by whatever way in, and the content of its reports."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.adoption import adoption_of
from nkitools.pytest_plugin.allow_mark import allowed_by_marks, wrong_marks
from nkitools.pytest_plugin.expected_errors import findings_in, noting_expected
from nkitools.pytest_plugin.marks import asked_devices, uses_ours
from nkitools.pytest_plugin.report_files import warn, write_report
from nkitools.pytest_plugin.sweep_mark import EACH_TIME, NO_CASES
from nkitools.record.run_listeners import collect_runs

if TYPE_CHECKING:
    from nkitools.pytest_plugin.live_prints import LiveTerminal
    from nkitools.record.prints.device_print import Print
    from nkitools.record.run import Run
    from nkitools.report.run_counts import Tally
    from nkitools.rules.finding import Finding

# The name under which a test's summary travels in its teardown report, also from xdist's workers.
SUMMARY = "nkitools_summary"

# How many prints are shown, and how many lines of each.
_OF_A_FAILURE = (20, 12)
_OF_A_PASS = (3, 6)
_PROPERTIES = ("nki_findings", "nki_rules", "nki_finding", "nki_facts", "nki_allowed")
_MOST_PROPERTIES = 20
_CAUGHT = "the test's own code has caught a finding: the kernel has not done its work (--nki-require-run)"
_MEND = "Mend the kernel, or expect the finding with expect_finding or pytest.raises."


class Recorder:
    """The recorder of the running test's runs.

    Under ``@given`` the runs are those of the current example, in a report of the example that Hypothesis reports;
    counts and findings are of all examples.
    """

    def __init__(self, config: pytest.Config, live: LiveTerminal | None = None) -> None:
        self.runs: list[Run] = []
        self._live = live
        self.last_run: Run | None = None
        self.asked_for: list[tuple[Run, Run | None]] = []  # by run_kernel; each with its run in full precision
        self._config = config
        self._item: pytest.Item | None = None
        self._base = str(config.invocation_params.dir)
        self._earlier: Tally | None = None
        self._watched: dict[str, Any] | None = None
        self._outcome = "passed"
        self._caught: list[Finding] = []  # in earlier examples of the test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Collect the runs of one test, from the setup of its fixtures to their teardown."""
        live = nullcontext() if self._live is None else self._live.during(item.nodeid)
        expected = noting_expected(self._expect) if adoption_of(self._config).is_adopted else nullcontext()
        with collect_runs() as runs, allowed_by_marks(item), live, expected:
            self.runs, self._item = runs, item
            try:
                result = yield
                self._write(item)
                return result
            finally:
                self._forget()
                self.runs, self._item = [], None
                self.asked_for = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin anew: a plugin that repeats failed tests does so inside one protocol."""
        self._forget()
        wrong = wrong_marks(item) or item.stash.get(NO_CASES, "")
        if wrong:
            pytest.fail(wrong, pytrace=False)

    def asked_devices(self) -> tuple[str, ...]:
        """Return the devices that the running test is for, by its marks."""
        return () if self._item is None else asked_devices(self._item)

    def asks_for(self, fixture: str) -> bool:
        """Return whether the running test asks for a fixture, by itself or by way of another."""
        return fixture in getattr(self._item, "fixturenames", ())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Let each Hypothesis example begin anew."""
        with _before_each_example(item, self._begin_example, self._expect):
            result = yield
        caught = [*self._caught, *self._caught_so_far()]
        if options.value("require_run") and caught:
            pytest.fail(f"{_CAUGHT}: {caught[0].text()}\n{_MEND}", pytrace=False)
        if options.value("require_run") and uses_ours(item) and not self._has_run():
            pytest.fail("no kernel has run in this test (--nki-require-run)", pytrace=False)
        return result

    def _expect(self, error: BaseException) -> None:
        """Note that the findings of an error are expected: they are not caught by the test's own code."""
        for finding in findings_in(error):
            for run in self.runs:
                if finding is getattr(run.error, "finding", None):
                    run.expected.append(finding)

    def _caught_so_far(self) -> list[Finding]:
        """Return the findings that have ended runs, though the test goes on, and that it does not expect."""
        return [finding for run in self.runs if (finding := _ended_by(run)) is not None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Name the author's line at which Ctrl-C came, not one of nkitools."""
        _hide_ours(excinfo)

    def _has_run(self) -> bool:
        return bool(self.runs or (self._earlier is not None and self._earlier.kernels))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Put findings and prints into the report of a failure, and the summary into the teardown's report."""
        if call.when == "call" and call.excinfo is not None and self.runs:
            from nkitools.pytest_plugin.wrong_blocks import follow_assertion

            follow_assertion(self._config, call.excinfo.value, self.runs)
        tally = self._tally()
        if tally is not None:
            _set_properties(item, tally)
        if call.excinfo is not None and not self._config.getoption("fulltrace", False):
            _hide_ours(call.excinfo)
        report: pytest.TestReport = yield
        if report.skipped and call.excinfo is not None:  # by the mark xfail, too
            self._expect(call.excinfo.value)
        if report.outcome != "passed" and self._outcome != "failed":
            self._outcome = report.outcome
        ended_by = None if call.excinfo is None else getattr(call.excinfo.value, "finding", None)
        if ended_by is not None and hasattr(ended_by, "slug") and report.failed:
            from nkitools.pytest_plugin.short_failures import begin_with_rule

            begin_with_rule(report, ended_by, shown_apart=self._config.getoption("showcapture", "all") == "all")
        if tally is not None:
            self._report(report, tally)
        if report.failed and call.when == "call" and call.excinfo is not None and self.runs:
            from nkitools.pytest_plugin.short_failures import begin_with
            from nkitools.pytest_plugin.wrong_elements import HEADING, wrong_elements

            lines = wrong_elements(self._config, item.nodeid, call.excinfo.value, self.runs)
            if lines:
                report.sections.append((HEADING, "\n".join(lines)))
                begin_with(report, lines[0])
        return report

    def _report(self, report: pytest.TestReport, tally: Tally) -> None:
        from nkitools.report.pictures import shows_blocks
        from nkitools.report.prints import first_prints

        if report.failed:
            # A worker of xdist does not know the terminal that its words will reach.
            blocks = not hasattr(self._config, "workerinput") and shows_blocks(sys.__stdout__)
            prints = first_prints(self._prints(), *_OF_A_FAILURE)
            report.sections += _sections(tally, prints, blocks=blocks)
        if report.when == "teardown":
            seen = frozenset() if self._live is None else self._live.shown
            shown = first_prints(self._prints(seen), *_OF_A_PASS) if options.value("prints") else []
            self._add_probes()
            from nkitools.facts.supported_versions import imported_outside  # the plugin stays light without kernels

            each_time = "" if self._item is None else self._item.stash.get(EACH_TIME, "")
            summary = {
                "tally": tally.as_plain(),
                "prints": shown,
                "watched": self._watched,
                "each_time": each_time,
                "outside": imported_outside(),
            }
            setattr(report, SUMMARY, summary)

    def _prints(self, besides: Set[int] = frozenset()) -> Iterator[Print]:
        """Yield the device prints of the runs, without those whose ids are in ``besides``."""
        return (one for run in self.runs for one in run.prints if id(one) not in besides)

    def _tally(self) -> Tally | None:
        """Return the tally of the test so far; None, without any import, if it ran no kernel."""
        if not self.runs:
            return self._earlier
        from nkitools.record.allowed_rules import set_aside
        from nkitools.report.run_counts import Tally

        for run in self.runs:
            set_aside(run)
        tally = Tally()
        if self._earlier is not None:
            tally.merge(self._earlier)
        tally.add(self.runs, self._base)
        return tally

    def _add_probes(self) -> None:
        """Keep the records of the option ``watch`` in the runs so far, which are about to be dropped."""
        if not options.value("watch") or not self.runs:
            return
        from nkitools.record.watch.probes import option_probes

        probes = option_probes(self.runs)
        if probes is not None:
            if self._watched is not None:
                probes.merge(self._watched)
            self._watched = probes.as_plain()

    def _begin_example(self) -> None:
        self._earlier = self._tally()
        self._caught += self._caught_so_far()
        self._add_probes()
        self.runs.clear()
        self.last_run = None

    def _forget(self) -> None:
        self.runs.clear()
        self.last_run = None
        self._earlier = None
        self._outcome = "passed"
        self._watched = None
        self._caught = []
        if self._live is not None:
            self._live.shown.clear()

    def _write(self, item: pytest.Item) -> None:
        directory = options.value("report")
        if isinstance(directory, str) and self.runs:
            warn(item, write_report(directory, item.nodeid, self._outcome, self.runs))


RECORDER = pytest.StashKey[Recorder]()


@contextmanager
def _before_each_example(
    item: pytest.Item, begin: Callable[[], None], escaped: Callable[[BaseException], None]
) -> Iterator[None]:
    """Call ``begin`` before every example of a Hypothesis test, through the handle that Hypothesis has for plugins.

    ``escaped`` is called with an error that an example lets out: Hypothesis decides about it.
    """
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    inner = getattr(handle, "inner_test", None)
    if handle is None or inner is None:
        yield
        return

    @functools.wraps(inner)
    def example(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        begin()
        try:
            return inner(*args, **kwargs)
        except Exception as error:
            escaped(error)
            raise

    handle.inner_test = example
    try:
        yield
    finally:
        handle.inner_test = inner


def _ended_by(run: Run) -> Finding | None:
    """Return the finding that ended a run; None if the test expects it."""
    finding: Finding | None = getattr(run.error, "finding", None)
    return None if any(finding is each for each in run.expected) else finding


def _set_properties(item: pytest.Item, tally: Tally) -> None:
    # At every phase anew: a fixture may run a kernel too, and JUnit reads them at the teardown.
    others = [(name, value) for name, value in item.user_properties if name not in _PROPERTIES]
    ours: list[tuple[str, object]] = [
        ("nki_findings", tally.finding_count()),
        ("nki_rules", ", ".join(tally.rules())),
        *(("nki_finding", finding.line()) for finding in tally.ranked()[:_MOST_PROPERTIES]),
        *(("nki_facts", each.facts_line()) for each in tally.ranked()[:_MOST_PROPERTIES] if each.facts),
        *(("nki_allowed", finding.line()) for finding in tally.ranked("allowed")[:_MOST_PROPERTIES]),
    ]
    item.user_properties[:] = [*others, *ours]


def _sections(tally: Tally, prints: list[str], *, blocks: bool) -> Iterator[tuple[str, str]]:
    lines = [line for finding in tally.ranked() for line in finding.lines(blocks=blocks)]
    if lines:
        yield "nki findings", "\n".join(lines)
    allowed = [finding.allowed_line() for finding in tally.ranked("allowed")]
    if allowed:
        yield "nki allowed findings", "\n".join(allowed)
    if prints:
        yield "nki prints", "\n".join(prints)


def _hide_ours(failure: pytest.ExceptionInfo[BaseException]) -> None:
    """End the traceback of a finding, or of Ctrl-C, at the author's line."""
    from nkitools.report.frames import is_shown, may_hide_ours

    if not may_hide_ours(failure.value):
        return
    kept = failure.traceback.filter(lambda entry: is_shown(str(entry.path)))
    if kept:
        failure.traceback = kept
