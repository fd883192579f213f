"""A run from its beginning to its end, and the verdict on what is found in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nkitools import allow_findings
from nkitools.record.run import Run
from nkitools.record.run_listeners import attend_runs, collect_runs
from nkitools.record.run_session import Findings, current_findings, session
from nkitools.rules.finding import KernelError, StopRun
from tests.report.test_run_counts import finding

ERROR, WARNING = finding(line=1), replace(finding(line=2), severity="warning")


class Attendant:
    """Writes down what it is called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Run]] = []

    def begun(self, run: Run) -> None:
        """Write down a beginning."""
        self.seen.append(("begun", run))

    def ended(self, run: Run) -> None:
        """Write down an end, and whether the run had its error then."""
        self.seen.append(("ended" if run.error is None else "failed", run))


@pytest.mark.parametrize(
    ("level", "kept", "raised"),
    [
        ("off", [], None),
        ("report", [WARNING, ERROR], None),
        ("error", [WARNING, ERROR], ERROR),
        ("strict", [WARNING, ERROR], WARNING),
    ],
)
def test_the_level_says_what_is_kept_and_raised(level: str, kept: list[Any], raised: Any) -> None:
    """All findings are kept before the first one that the level raises is raised."""
    run, cause = Run("giou", "elsewhere"), ValueError("why")
    if raised is None:
        with session(run, level) as findings:
            findings.add([WARNING, ERROR], cause)
    else:
        with pytest.raises(KernelError) as error, session(run, level) as findings:
            findings.add([WARNING, ERROR], cause)
        assert (error.value.finding, error.value.__cause__, run.error) == (raised, cause, error.value)
    assert (run.findings, run.set_aside) == (kept, [])


@pytest.mark.parametrize("level", ["report", "error", "strict"])
def test_accepted_findings_are_set_aside(level: str) -> None:
    """Findings of an allowed rule raise nothing and keep the reason; a fatal finding is never accepted."""
    run = Run("giou", "elsewhere")
    with allow_findings("NK101", reason="tiled"), session(run, level) as findings:
        findings.add([ERROR, WARNING])
        assert findings.verdict("NK101", "error", fatal=True).reason is None
        assert findings.all == [ERROR, WARNING]
        assert not findings.has_error
    assert (run.findings, run.set_aside) == ([], [(ERROR, "tiled"), (WARNING, "tiled")])


@pytest.mark.parametrize(
    ("level", "fatal", "expected"),
    [("off", True, (True, None, True)), ("report", True, (True, None, True)), ("off", False, (False, None, False))],
)
def test_what_is_not_modelled_is_raised_at_every_level(level: str, fatal: bool, expected: Any) -> None:
    """A fatal NK607 is kept and raised; a warning of the same rule follows the level."""
    severity = "error" if fatal else "warning"
    assert Findings(Run("giou", "elsewhere"), level).verdict("NK607", severity, fatal=fatal) == expected


def test_a_run_is_announced_and_concluded_whatever_ends_it() -> None:
    """Listeners get the run when it begins; attendants are called at the end too, when the run has its error."""
    attendant, runs = Attendant(), [Run("giou", "elsewhere") for _ in range(3)]
    with collect_runs() as collected, attend_runs(attendant):
        with session(runs[0]):
            assert (collected, attendant.seen) == ([runs[0]], [("begun", runs[0])])
        with session(runs[1]):
            raise StopRun
        with pytest.raises(KeyboardInterrupt), session(runs[2]):
            raise KeyboardInterrupt
    ends = ["ended", "ended", "failed"]
    assert collected == runs
    assert attendant.seen == [
        pair for run, end in zip(runs, ends, strict=True) for pair in (("begun", run), (end, run))
    ]
    assert isinstance(runs[2].error, KeyboardInterrupt)


@pytest.mark.parametrize(("level", "kept"), [("report", [ERROR]), ("off", [])])
def test_the_finding_of_an_error_is_kept_once(level: str, kept: list[Any]) -> None:
    """An error that was raised without a verdict brings its finding; one that is already there is not doubled."""
    run = Run("giou", "elsewhere")
    for _ in range(2):
        with pytest.raises(KernelError), session(run, level):
            raise KernelError(ERROR)
    assert run.findings == kept


def test_the_current_findings_are_the_innermost_runs() -> None:
    """Sessions nest; outside of a session there are none."""
    outer, inner = Run("outer", "elsewhere"), Run("inner", "elsewhere")
    with session(outer) as first:
        with session(inner) as second:
            assert current_findings() is second
        assert current_findings() is first
    assert current_findings() is None
