"""``make compare-official``: the examples on AWS's simulator, here a fake, and on ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.official.section import section, write
from benchmarks.official.sides import Verdict
from tests.fakes import machines

REPOSITORY = Path(__file__).parents[2]


def compared(page: Path, *options: str, fakes: tuple[str, ...] = ("aws",), **said: str) -> tuple[int, str]:
    path = os.pathsep.join([machines.packages(*fakes), str(REPOSITORY)])
    command = [sys.executable, "-m", "benchmarks.official", "--no-kernels", "--page", str(page), *options]
    environment = {**os.environ, "PYTHONPATH": path, **said}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.process
def test_disagreements(tmp_path: Path) -> None:
    """A fake that checks no rules agrees on the good example, and computes what the bad one is refused for."""
    page = tmp_path / "practice.md"
    page.write_text("# Practice\n\nA table.\n", encoding="utf-8")
    status, said = compared(page, "--python", sys.executable, "--examples", "NK401/[bg]*d.py")
    assert status == 0, said
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Practice\n\nA table.\n\n<!-- compare-official: begin -->\n## Beside AWS's own simulator")
    assert "with nki of unknown version: of 2 examples of rules 1 agree." in text
    assert "| NK401/bad.py | nkitools refuses, AWS's simulator computes | NK401 " in text


@pytest.mark.process
def test_a_simulator_that_fails(tmp_path: Path) -> None:
    """An example that AWS's simulator alone refuses stands in the table with AWS's own words, and its place."""
    page = tmp_path / "practice.md"
    options = ("--python", sys.executable, "--examples", "NK401/good.py")
    assert compared(page, *options, FAKE_NEURON="lame")[0] == 0
    row = "| NK401/good.py | AWS's simulator refuses, nkitools computes | RuntimeError: the simulator gives up ("
    assert row in page.read_text(encoding="utf-8")


@pytest.mark.process
def test_packages_that_cannot_be_had(tmp_path: Path) -> None:
    """Without AWS's packages the command names them, writes nothing, and ends with exit code 2."""
    page = tmp_path / "practice.md"
    status, said = compared(page, "--python", sys.executable, fakes=())
    assert (status, page.exists()) == (2, False)
    assert said.startswith("not run: nki and neuronx-cc: ")


def test_the_section_is_replaced(tmp_path: Path) -> None:
    """A second comparison takes the place of the first; what stands around it stays."""
    page = tmp_path / "practice.md"
    verdicts = [Verdict("NK101/good.py", "agree"), Verdict("NK102/good.py", "differ", "`out` at [0, 0]: 1 | 2")]
    write(page, section(verdicts, ["kernel calls that agree: 3"], {"nki": "0.6"}, "2026-01-01"))
    page.write_text(page.read_text(encoding="utf-8") + "After it.\n", encoding="utf-8")
    write(page, section(verdicts[:1], [], {"nki": "0.7"}, "2026-02-02"))
    text = page.read_text(encoding="utf-8")
    assert text.count("## Beside AWS's own simulator") == 1
    assert "As of 2026-02-02, with nki 0.7: of 1 examples of rules 1 agree." in text
    assert "NK102" not in text
    assert text.endswith("<!-- compare-official: end -->\nAfter it.\n")
