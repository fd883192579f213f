"""The end of a session in the terminal: runs, findings, and on request prints."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.recording import SUMMARY
from nkitools.pytest_plugin.report_files import has_report

if TYPE_CHECKING:
    from nkitools.report.run_counts import Tally


class Summary:
    """Adds up the tests' reports; with xdist in the controller, from the workers' reports."""

    def __init__(self) -> None:
        self._began = time.time()
        self._failed: set[str] = set()
        self._told: list[tuple[str, dict[str, Any]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the teardown report says of a test that ran kernels, and which tests failed."""
        if report.failed:
            self._failed.add(report.nodeid)
        plain = getattr(report, SUMMARY, None)
        if plain is not None:
            self._told.append((report.nodeid, plain))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show it; silent where no kernel ran."""
        if not self._told:
            return
        # The findings and prints of a failure stand in sections of its own report.
        passing = [(nodeid, plain) for nodeid, plain in self._told if nodeid not in self._failed]
        _show_prints(terminalreporter, [(nodeid, plain["prints"]) for nodeid, plain in passing if plain["prints"]])
        if options.value("findings") == "all":
            _show_findings(terminalreporter, self._sum(passing))
        for said in sorted({plain["each_time"] for _, plain in self._told} - {""}):
            terminalreporter.write_line(f"nki: {said}", yellow=True)
        _show_watches(terminalreporter, [plain["watched"] for _, plain in self._told if plain["watched"] is not None])
        directory = options.value("report")
        is_written = isinstance(directory, str) and any(
            has_report(directory, nodeid, self._began) for nodeid, _ in self._told
        )
        where = f"; report in {directory}" if is_written else ""
        total = self._sum(self._told)
        terminalreporter.write_line(f"nki: {total.sentence()}{where}")
        for sentence in dict.fromkeys(each for _, plain in self._told for each in plain["outside"]):
            terminalreporter.write_line(f"nki: {sentence}")
        if not self._failed and options.value("why") != "off":
            from nkitools.report import never_met

            missing = never_met.sentence(total.met)
            if missing:
                terminalreporter.write_line(f"nki: {missing}")

    def _sum(self, told: Iterable[tuple[str, dict[str, Any]]]) -> Tally:
        from nkitools.report.run_counts import Tally

        total = Tally()
        for nodeid, plain in told:
            tally = Tally.from_plain(plain["tally"])
            if nodeid not in self._failed:
                tally.catch_raised()
            total.merge(tally)
        return total


def _show_watches(terminal: pytest.TerminalReporter, watched: list[dict[str, Any]]) -> None:
    """Say which watches have recorded nothing in the whole session."""
    if not watched:
        return
    from nkitools.record.watch.probes import Probes

    together = Probes(())
    for plain in watched:
        together.merge(plain)
    for complaint in together.complaints():
        terminal.write_line(f"nki: --nki-watch: {complaint}", yellow=True)


def _show_prints(terminal: pytest.TerminalReporter, prints: list[tuple[str, list[str]]]) -> None:
    if prints:
        terminal.write_sep("=", "nki device prints")
    for nodeid, texts in prints:
        terminal.write_line(nodeid, bold=True)
        for text in texts:
            terminal.write_line(text)


def _show_findings(terminal: pytest.TerminalReporter, tally: Tally) -> None:
    from nkitools.report.pictures import shows_blocks

    blocks = shows_blocks(sys.__stdout__)
    lines = [line for finding in tally.ranked() for line in finding.lines(blocks=blocks)]
    _show_lines(terminal, "nki findings of passing tests", lines)
    _show_lines(terminal, "nki allowed findings", [finding.allowed_line() for finding in tally.ranked("allowed")])


def _show_lines(terminal: pytest.TerminalReporter, heading: str, lines: Sequence[str]) -> None:
    if lines:
        terminal.write_sep("=", heading)
    for line in lines:
        terminal.write_line(line)
