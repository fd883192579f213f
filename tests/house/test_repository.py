"""The repository as people meet it: what it says, and the commands that it offers."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import nkitools
from tests.house.sources import nodes_in

REPOSITORY = Path(__file__).parents[2]

# Written so that this file does not contain what it looks for.
OF_ONE_MACHINE = re.compile(
    rb"/(?:wor[k]|far[m]|tmp/bash_job[s])/|files\.pythonhoste[d]|registry\.npmj[s]|deb\.debia[n]"
)


def git_files() -> list[Path]:
    """The files that git tracks or would track; skips outside a git checkout."""
    if not (REPOSITORY / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [path for name in names.split("\0") if name and (path := REPOSITORY / name).is_file()]


@pytest.mark.process
def test_the_repository_speaks_of_the_project_alone() -> None:
    """No file names a path of the machine it was written on, or the host of a package registry."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.decode(errors='replace').strip()}"
        for path in git_files()
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
        if OF_ONE_MACHINE.search(line)
    ]
    assert found == []


@pytest.mark.process
def test_make_alone_lists_the_targets() -> None:
    """A newcomer who types `make` sees what there is, one line a target."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    make = ["make", "--no-print-directory"]
    listing = subprocess.run(make, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    listed = {words[1]: words[2:] for words in map(str.split, listing.splitlines())}
    assert listed.keys() >= {"help", "sim", "test", "lint", "bench", "clean", "docs"}
    assert all(listed.values()), "every target says what it does"


def asks_for_a_target(path: Path) -> bool:
    """Whether a file has a test or a fixture that takes a target's fixture, or a test with the mark ``sim``."""
    source = path.read_text(encoding="utf-8")
    if not re.search(r"run_kernel|expect_finding|mark\.sim", source):
        return False
    nodes = nodes_in(source)
    taken = {each.arg for node in nodes if isinstance(node, ast.FunctionDef) for each in node.args.args}
    marked = any(isinstance(node, ast.Attribute) and node.attr in ("sim", "simulation") for node in nodes)
    return marked or not taken.isdisjoint({"run_kernel", "expect_finding"})


def test_make_sim_collects_where_tests_for_a_target_are() -> None:
    """The folders and files that the Makefile names have all of them, so that no other need be collected."""
    (named,) = re.findall(r"^SIM := (.+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    places = [REPOSITORY / "tests" / each for each in named.split()]
    found = {path for path in (REPOSITORY / "tests").rglob("test_*.py") if asks_for_a_target(path)}
    assert len(found) > 20
    assert {path for path in found if not any(path == each or each in path.parents for each in places)} == set()
    assert all(place.exists() for place in places)


def test_the_package_and_its_metadata_agree_on_the_version() -> None:
    """`nkitools.__version__` is the version that is published."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert nkitools.__version__ == project["version"]
