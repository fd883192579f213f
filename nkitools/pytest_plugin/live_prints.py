"""``--nki-prints``: device prints in the terminal as they come, and how far a long run is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print
    from nkitools.record.run import Run
    from nkitools.report.progress import Progress


class LiveTerminal:
    """Writes the prints of the running test to the terminal between pytest's own lines.

    ``shown``: the ids of prints that the user has seen, here or directly on an uncaptured stdout.
    """

    def __init__(self, config: pytest.Config, session: ExitStack) -> None:
        self.shown: set[int] = set()
        self._config = config
        self._session = session
        self._said = ""
        self._nodeid = ""
        self._progress: Progress | None = None
        self._terminal = _way_to_the_terminal(session)

    @property
    def _reporter(self) -> Any:
        return self._config.pluginmanager.get_plugin("terminalreporter")

    @contextmanager
    def during(self, nodeid: str) -> Iterator[None]:
        """Show prints and progress while a test runs; a worker of xdist has no terminal."""
        if self._reporter is None or hasattr(self._config, "workerinput"):
            yield
            return
        from nkitools.record.prints.print_display import showing_prints
        from nkitools.record.run_listeners import attend_runs

        self._nodeid, self._said = nodeid, ""
        with showing_prints(self._show), attend_runs(self):
            yield

    def begun(self, run: Run) -> None:
        """Show the progress of a new run, if there is a terminal."""
        if self._progress is None and self._terminal is not None and self._reporter.isatty:
            from nkitools.report.progress import Progress

            self._progress = Progress(self._terminal, lead=self._new_line)
            self._session.callback(self._progress.close)
        if self._progress is not None:
            self._progress.begun(run)

    def ended(self, run: Run) -> None:
        """Remove the progress of a run that has ended."""
        if self._progress is not None:
            self._progress.ended(run)

    def _new_line(self) -> str:
        """Return the text before the progress of a run, which needs a line of its own."""
        if not self._reporter.currentfspath:
            return ""
        self._reporter.currentfspath = None
        return "\n"

    def _show(self, one: Print, echoes: bool) -> bool:
        """Write a print. Its way in still prints it, too, so that a test which captures stdout finds it there."""
        self.shown.add(id(one))
        if echoes and self._config.getoption("capture", "") == "no":
            return False
        from nkitools.report.prints import terminal_text

        reporter = self._reporter
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        released = nullcontext() if capture is None else capture.global_and_fixture_disabled()
        hidden = nullcontext() if self._progress is None else self._progress.hidden()
        with hidden, released:
            reporter.ensure_newline()
            if self._said != self._nodeid:
                self._said = self._nodeid
                reporter.write_line(self._nodeid, bold=True)
            width = reporter._screen_width if reporter.isatty else None
            reporter.write_line(terminal_text(one, width, color=reporter.hasmarkup))
            reporter.flush()
        return False


def _way_to_the_terminal(session: ExitStack) -> TextIO | None:
    """Return standard output as it was before pytest redirected it; None if it is no terminal.

    A thread cannot suspend pytest's redirection.
    """
    if sys.__stdout__ is None or not sys.__stdout__.isatty():
        return None
    stream = os.fdopen(os.dup(sys.__stdout__.fileno()), "w", errors="replace")
    session.callback(stream.close)
    return stream
