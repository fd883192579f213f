"""A job of the workflow fails where a test is skipped for a reason that is not on its list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.processes import LEAN
from tests.skips import UnlistedSkips
from tests.skips.not_tested import MOST_LINES, lines_of

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


REASONS = {
    "could not import 'torch': No module named 'torch'": 80,
    "torch is not installed": 7,
    "could not import 'jax.numpy': No module named 'jax'": 5,
    "libtpu, which has the TPU compiler, is not installed (Linux x86-64: pip install 'nkitools[tpu-aot]')": 11,
    "no browser: found no chromium": 60,
    "custom operators need a C++ compiler: none of c++, g++, clang++ on the path. Install one": 9,
    "the extra nkitools[profile] is not installed": 4,
    "could not import 'some_module': No module named 'some_module'": 3,
    "root writes everywhere": 1,
    "NK613, before any run": 2,
}


def test_what_was_not_tested_is_said_with_what_to_install() -> None:
    """One line a lack, the largest first; what nothing helps against stands last."""
    assert lines_of(REASONS) == [
        "182 tests were skipped; what they are about, and what to install for them:",
        "  87 of torch tensors and modules: pip install torch",
        "  60 of pages in a browser: apt-get install chromium chromium-driver",
        "  11 of the TPU compiler: pip install 'jax[tpu]' (Linux x86-64)",
        "  9 of custom C++ operators: apt-get install g++",
        "  5 of Pallas kernels and JAX arrays: pip install jax",
        "  4 of profiles and Parquet: pip install pyarrow",
        "  3 of what takes some_module: pip install some-module",
        "  2 of cases that this machine or session does not have: nothing (-rs lists them)",
        "  1 of folders that cannot be written: nothing: run as another user than root",
    ]


def test_many_lacks_are_ten_lines() -> None:
    """The smallest groups share the last one."""
    many = {f"could not import 'm{number}': No module named 'm{number}'": 100 - number for number in range(20)}
    lines = lines_of(many)
    assert len(lines) == MOST_LINES
    assert lines[1] == "  100 of what takes m0: pip install m0"
    assert lines[-1].startswith(f"  {sum(range(81, 93))} others (-rs lists them): pip install m8; pip install m9; ")


LACKING = """
import pytest
lacking = pytest.importorskip("lacking")

def test_a(): pass
def test_b(): pass
"""
PRESENT = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_c(number):
    if number:
        pytest.importorskip("lacking")

@pytest.mark.xfail
def test_d():
    assert False
"""


@pytest.mark.process
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_session_ends_with_them(workers: tuple[str, ...], tmp_path: Path) -> None:
    """Files that skip themselves count with their tests, once also where several processes collect them."""
    (tmp_path / "test_lacking.py").write_text(LACKING)
    (tmp_path / "test_present.py").write_text(PRESENT)
    program = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "-q", "-p", "tests.skips", *LEAN, *workers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "what to install for them:\n  4 of what takes lacking: pip install lacking\n" in done.stdout


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
