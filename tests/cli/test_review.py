"""A change is reviewed: findings at its lines alone, and estimates before and after."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from nkitools.cli import main

pytestmark = pytest.mark.process
KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in range(8):
        nisa.activation(dst=tile, op=nl.exp, data=tile)
    nl.store(out, tile)
    return out


inputs = (np.zeros((128, 512), np.float32),)
"""


def git(folder: Path, *command: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *command], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of a kernel, in which an old mistake stands."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "kernel.py").write_text(KERNEL.replace("op=nl.exp, ", "operation=nl.exp, "))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lint(*arguments: str) -> tuple[int, list[tuple[str, int]]]:
    done = CliRunner().invoke(main, ["lint", "--format", "json", *arguments])
    return done.exit_code, [(each["rule"], each["line"]) for each in json.loads(done.stdout)["findings"]]


def test_only_findings_at_changed_lines_are_shown(repository: Path) -> None:
    """An old finding stays out; one at a changed line, and those of a file that git does not track, are there."""
    assert lint("kernel.py") == (1, [("NK609", 12)])
    assert lint("--diff", "HEAD", "kernel.py") == (0, [])
    text = (repository / "kernel.py").read_text()
    (repository / "kernel.py").write_text("import math\n" + text.replace("nl.load(x)", "nl.load(x, kind=3)"))
    assert lint("--diff", "HEAD", "kernel.py") == (1, [("NK609", 11)])
    (repository / "new.py").write_text(text)
    assert lint("--diff", "HEAD", "new.py") == (1, [("NK609", 12)])
    (repository / "clean.py").write_text("")
    for file in ("kernel.py", "clean.py"):  # a commit that is not there hides no finding, and is no success
        done = CliRunner().invoke(main, ["lint", "--diff", "nowhere", file])
        assert (done.exit_code, "git rev-parse: no such commit: nowhere\n" in done.output) == (2, True)


def test_the_estimate_stands_beside_that_of_a_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the turns take less time; the table is in the job's summary, too; a new file has no other side."""
    (repository / "kernel.py").write_text(KERNEL)
    git(repository, "commit", "--quiet", "--all", "-m", "two")
    (repository / "kernel.py").write_text(KERNEL.replace("range(8)", "range(4)"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / "summary.md"))
    done = CliRunner().invoke(main, ["estimate", "kernel.py::kernel", "--chip", "trn2", "--against", "HEAD"])
    assert done.exit_code == 0, done.output
    header, row = (line for line in done.output.splitlines() if line.startswith("| "))
    assert header == "| chip | before | after | change |"
    assert row.startswith("| trn2 | ")
    assert row.endswith("% |")
    assert "| -" in row
    assert (repository / "summary.md").read_text().strip() == done.output.strip()
    changed = [line for line in done.output.splitlines() if line.startswith("- line ")]
    assert changed
    assert all(line.endswith((" dma", " vector", " scalar")) for line in changed)
    since = CliRunner().invoke(main, ["estimate", "kernel.py::kernel", "--chip", "trn2", "--since", "HEAD"])
    assert since.output == done.output
    both = CliRunner().invoke(main, ["estimate", "kernel.py::kernel", "--against", "HEAD~1", "--since", "HEAD"])
    assert (both.exit_code, "give one of them" in both.output) == (2, True)
    (repository / "new.py").write_text(KERNEL)
    done = CliRunner().invoke(main, ["estimate", "new.py::kernel", "--against", "HEAD"])
    assert done.exit_code == 2
    assert "new.py is not there in HEAD" in done.output
