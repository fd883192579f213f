"""The passes of continuous integration: what a session counts, what a later one runs, and their sum."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

TESTS = """
import pytest

def test_passes(): pass

def test_fails(): raise ValueError

@pytest.mark.parametrize("n", range(3))
def test_skips(n): pytest.skip("not here") if n else None

@pytest.fixture
def broken():
    yield
    raise ValueError

def test_error(broken): pass

@pytest.mark.frameworks
def test_framework(): pass
"""
WHOLE_FILE = "import pytest; pytest.skip('torch is not installed', allow_module_level=True)"
PLUGIN = ("-p", "tests.session_results", "-o", "markers=frameworks", "-p", "no:randomly")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Two files of tests, one of which leaves itself out."""
    pytester.makepyfile(test_some=TESTS, test_torch=WHOLE_FILE)
    return pytester


def results_of(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((path / ".pytest_cache/v/nkitools/results").read_text())
    return found


@pytest.mark.process
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_session_counts_as_its_last_line_does(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """With the ids of what was skipped, a whole file too."""
    project.makeconftest(f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})")
    done = project.runpytest_subprocess(*PLUGIN, *workers)
    done.assert_outcomes(passed=4, failed=1, errors=1, skipped=3)
    found = results_of(project.path)
    assert (found["passed"], found["failed"]) == (4, 2)
    assert set(found["skipped"]) == {"test_some.py::test_skips[1]", "test_some.py::test_skips[2]", "test_torch.py"}  # type: ignore[call-overload]


@pytest.mark.process
def test_a_later_session_runs_what_was_skipped_and_the_frameworks(project: pytest.Pytester) -> None:
    """Of a file that was skipped all tests."""
    skipped = ["test_some.py::test_skips[1]", "test_torch.py"]
    (project.path / "results.json").write_text(json.dumps({"passed": 0, "failed": 0, "skipped": skipped}))
    project.makepyfile(test_torch="def test_tensor(): pass")
    done = project.runpytest(*PLUGIN, "--skipped-in=results.json", "-v", "-rs")
    done.assert_outcomes(passed=2, skipped=1, deselected=5)


@pytest.mark.process
@pytest.mark.parametrize(
    ("steps", "counts", "line", "code"),
    [
        (0, [(5, 0, 1), (7, 0, 2)], "12 passed, 0 failed, 3 skipped", 0),
        (1, [(5, 1, 0), (7, 0, 0)], "12 passed, 1 failed, 0 skipped", 1),
        (2, [(5, 0, 0)], "5 passed, 2 failed, 0 skipped", 1),  # a session that did not end, a lint that found something
    ],
)
def test_the_last_line_is_the_sum(
    tmp_path: Path, steps: int, counts: list[tuple[int, int, int]], line: str, code: int
) -> None:
    """Of all passes; a step that failed without a failed test counts."""
    files = []
    for number, (passed, failed, skipped) in enumerate(counts):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps({"passed": passed, "failed": failed, "skipped": ["id"] * skipped}))
    totals = [sys.executable, str(REPOSITORY / ".ci" / "totals.py"), str(steps), *map(str, files)]
    done = subprocess.run(totals, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == (f"{line}\n", code)


def test_the_readme_has_the_two_commands_first() -> None:
    """They are what the bare pass runs."""
    readme = (REPOSITORY / "README.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert re.findall(r"^make \w+", block[1], re.MULTILINE) == ["make sim", "make test"]
