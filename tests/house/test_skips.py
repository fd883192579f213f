"""A job of the workflow fails where a test is skipped for a reason that is not on its list."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.skips import UnlistedSkips

REPOSITORY = Path(__file__).parents[2]


def outcome(path: Path, *reasons: str, expected: bool = False) -> tuple[int, list[str]]:
    """Return the exit status of a session with tests that were skipped for these reasons, and what it says."""
    watcher, said = UnlistedSkips(path), []
    for reason in reasons:
        report: Any = SimpleNamespace(
            skipped=True, longrepr=("it.py", 1, f"Skipped: {reason}"), nodeid="it.py::test_it"
        )
        if expected:
            report.wasxfail = ""
        watcher.pytest_runtest_logreport(report)
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    watcher.pytest_sessionfinish(session)
    terminal: Any = SimpleNamespace(write_line=lambda line, **_: said.append(line))
    watcher.pytest_terminal_summary(terminal)
    return int(session.exitstatus), said


def test_a_reason_that_is_not_listed_fails(tmp_path: Path) -> None:
    """It is named once, with the first of its tests; an expected failure is no skip."""
    listed = tmp_path / "list.txt"
    listed.write_text("# a comment\nroot writes everywhere\nNK61[13], before.*  # why\n")
    assert outcome(listed, "root writes everywhere", "NK611, before any run") == (0, [])
    assert outcome(listed, "no torch", expected=True) == (0, [])
    said = ["skipped, and not in list.txt: no torch (it.py::test_it)"]
    assert outcome(listed, "no torch", "NK613, before any run", "no torch") == (1, said)
    assert outcome(listed, "NK612, before any run")[0] == 1


def test_each_list_is_that_of_a_job_and_actions_are_pinned_by_hash() -> None:
    """Every list is named in the workflow, and what the workflow names is there; no action moves under it."""
    workflow = (REPOSITORY / ".github" / "workflows" / "test.yml").read_text()
    lists = {path.name for path in (REPOSITORY / "tests" / "skips").glob("*.txt")}
    assert lists
    assert {name for name in lists if f"--skips tests/skips/{name}" in workflow} == lists
    assert workflow.count("--skips ") == sum(workflow.count(f"--skips tests/skips/{name}") for name in lists)
    for path in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        uses = [line.partition("uses:")[2].split()[0] for line in path.read_text().splitlines() if "uses:" in line]
        assert uses
        assert [each for each in uses if len(each.partition("@")[2]) != 40] == [], path.name
