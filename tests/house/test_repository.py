"""The repository as people meet it: what it says, and the commands that it offers."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import nkitools

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


def test_the_package_and_its_metadata_agree_on_the_version() -> None:
    """`nkitools.__version__` is the version that is published."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert nkitools.__version__ == project["version"]
