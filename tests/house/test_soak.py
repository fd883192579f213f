"""The full counts of random tests: who runs them, and that they can be stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
RANDOM = """
import os
from hypothesis import given, strategies as st
import pytest
from tests.cases import cases

def note(name):
    with open("ran", "a") as file:
        file.write(name + " ")

@given(st.integers())
def test_property(x):
    note("p")

@pytest.mark.soak
def test_loop():
    note(f"loop:{len(range(cases(300)))}")
    assert not os.path.exists("stop")

def test_plain():
    note("plain")
"""


@pytest.fixture
def random_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a property test, a loop over seeds and a plain test, and with this repository's plugins."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest('pytest_plugins = ["tests.processes", "tests.soak"]')
    pytester.makeini("[pytest]\nmarkers =\n    process\n    soak\naddopts = -p no:randomly -p no:cacheprovider")
    pytester.makepyfile(RANDOM)
    return pytester


def ran(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Run pytest, and return what the tests noted, without repeats."""
    (pytester.path / "ran").unlink(missing_ok=True)
    pytester.runpytest_subprocess(*arguments)
    noted = pytester.path / "ran"
    return noted.read_text(encoding="utf-8").split() if noted.exists() else []


def test_one_case_in_a_hundred_runs_by_default(random_tests: pytest.Pytester) -> None:
    """Property tests run 10 examples of 1,000, a loop over 300 seeds 3 of them, and a plain test is a plain test."""
    noted = ran(random_tests)
    assert [noted.count("p"), noted.count("plain")] == [10, 1]
    assert "loop:3" in noted


def test_a_soak_runs_all_cases_of_the_random_tests_alone(random_tests: pytest.Pytester) -> None:
    """All 300 seeds and 1,000 examples; what passed is not run again at the same commit, what failed is."""
    stop = random_tests.path / "stop"
    stop.touch()
    noted = ran(random_tests, "--soak", "-m", "soak")
    assert [noted.count("p"), noted.count("loop:300"), noted.count("plain")] == [1000, 1, 0]
    stop.unlink()
    assert ran(random_tests, "--soak", "-m", "soak") == ["loop:300"]
    done = random_tests.runpytest_subprocess("--soak", "-m", "soak")
    assert done.ret == pytest.ExitCode.OK
    done.stdout.fnmatch_lines(["soak: 2 tests have passed at this commit and are left out"])


def test_another_commit_begins_anew(random_tests: pytest.Pytester) -> None:
    """A change of a tracked file, committed or not, forgets what passed."""
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        assert random_tests.run("git", *arguments).ret == 0
    loop = ("--soak", "-m", "soak", "-k", "loop")
    assert ran(random_tests, *loop) == ["loop:300"]
    assert ran(random_tests, *loop) == []
    with next(random_tests.path.glob("test_*.py")).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert ran(random_tests, *loop) == ["loop:300"]


def test_a_process_needs_the_mark(random_tests: pytest.Pytester) -> None:
    """A test that starts a process without the mark fails, and its report names the mark; with the mark it passes."""
    random_tests.makepyfile(
        """
        import multiprocessing, subprocess, sys
        import pytest

        def starts():
            subprocess.run([sys.executable, "-c", ""], check=True)

        def test_unmarked():
            starts()

        def test_unmarked_worker():
            multiprocessing.Process(target=print).start()

        @pytest.mark.process
        def test_marked():
            starts()
        """
    )
    done = random_tests.runpytest_subprocess()
    done.assert_outcomes(failed=2, passed=1)
    done.stdout.fnmatch_lines(["E * test_a_process_needs_the_mark.py::test_unmarked starts a process: *.process"])


def test_at_least_one_case_runs() -> None:
    """However few there are."""
    assert [cases(1), cases(99), cases(1000)] in ([1, 1, 10], [1, 99, 1000])
