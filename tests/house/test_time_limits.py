"""A test that never ends fails, in Python or in C, and the session comes to its end."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import processes
from tests.house.sources import nodes_of

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
ENDLESS = """
import itertools, time

def test_in_python():
    time.sleep(100)

def test_after():
    pass

def test_in_c():
    sum(itertools.repeat(0))  # which handles no signal
"""


def session(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a session with the plugins of this repository that limit tests, half a second for each."""
    (tmp_path / "test_endless.py").write_text(ENDLESS)
    (tmp_path / "conftest.py").write_text("import tests.time_limits\ntests.time_limits.GRACE_SECONDS = 0.5\n")
    plugins = ["-p", "tests.time_limits", "-p", "no:cacheprovider", "-p", "no:randomly", *processes.LEAN]
    program = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "-q", *plugins, "-o", "timeout=0.5", *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


def test_a_test_that_sleeps_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    """The session goes on behind a test that has had its time."""
    done = session(tmp_path, "-k", "python or after")
    assert "Timeout (>0.5s) from pytest-timeout" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 failed, 1 passed, 1 deselected")


def test_one_that_does_not_come_back_to_python_ends_its_process(tmp_path: Path) -> None:
    """The stacks name it; nothing that is captured hides them."""
    done = session(tmp_path, "-k", "in_c")
    assert done.returncode == 1
    assert "Timeout (0:00:01)!" in done.stderr
    assert "in test_in_c" in done.stderr


def test_every_test_has_a_limit() -> None:
    """The limit stands where pytest reads it, and pytest-timeout comes with what the tests need."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert 60 <= project["tool"]["pytest"]["ini_options"]["timeout"] <= 600
    assert any(each.startswith("pytest-timeout") for each in project["dependency-groups"]["test"] if type(each) is str)


def test_processes_that_tests_talk_to_have_limits() -> None:
    """Pipes that are read by hand, and processes that are waited for, are those of `tests.children`."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Popen", "subprocess.Popen")
    ]
    assert {place.partition(":")[0] for place in found} == {"tests/children.py"}, found
