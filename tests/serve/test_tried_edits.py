"""An edit that an answer suggests was tried on the run: whether its finding goes."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from nkitools.serve.simulated_file import simulated
from nkitools.serve.tried_edits import findings_of_run

HEAD = """\
import nki
import nki.language as nl
import numpy as np

inputs = (np.ones((300, 64), np.float32),)


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
"""
LOOP = """\
    for i in range(ROUNDED):
        rows = nl.ds(i * 128, min(128, x.shape[0] - i * 128))
        nl.store(out[rows, :], SCALED)
    return out
"""
DOWN = HEAD + LOOP.replace("ROUNDED", "x.shape[0] // 128").replace("SCALED", "nl.load(x[rows, :])")
OPERATOR = HEAD + LOOP.replace("ROUNDED", "3").replace("SCALED", "nl.load(x[rows, :]) * nl.load(x)")


def suggested(text: str, folder: Path, **asked: Any) -> list[dict[str, Any]]:
    """The suggestions of the first finding of a text that has any."""
    path = folder / "kernels.py"
    path.write_text(text)
    found = simulated({"file": str(path), "kernel": "kernel", **asked})
    assert path.read_text() == text
    return next(each["suggestions"] for each in found["findings"] if each["suggestions"])


@pytest.mark.parametrize(
    ("text", "says"), [(DOWN, "NK403 gone"), (OPERATOR, "NK601 gone; NK101, NK102 found")], ids=["gone", "another"]
)
def test_an_edit_says_what_became_of_its_rule(text: str, says: str, tmp_path: Path) -> None:
    """And which other errors the edited kernel has; the file stays as it is."""
    assert suggested(text, tmp_path, try_edits=True)[0]["tried"] == says


def test_nothing_is_tried_unasked(tmp_path: Path) -> None:
    """An editor shows findings at each keystroke."""
    assert "tried" not in suggested(DOWN, tmp_path)[0]


def test_lint_tries_edits_by_lint(tmp_path: Path) -> None:
    """In JSON, and in the description of a fix of SARIF."""
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + "    y = nl.load(x) * 2\n    nl.store(out, nl.mulitply(y, 2))\n    return out\n")
    found = json.loads(CliRunner().invoke(main, ["lint", "--json", str(path)]).stdout)["findings"]
    assert [one["tried"] for each in found for one in each["suggestions"]] == ["NK601 gone", "NK607 gone"]
    log = json.loads(CliRunner().invoke(main, ["lint", "--format", "sarif", str(path)]).stdout)
    texts = [one["description"]["text"] for each in log["runs"][0]["results"] for one in each["fixes"]]
    assert texts == [
        "Write `nl.multiply(nl.load(x), 2)` (tried: NK601 gone)",
        "Write `nl.multiply` (tried: NK607 gone)",
    ]


@pytest.mark.parametrize("rules", ["error", "report"])
def test_a_run_tries_edits_on_its_arguments(rules: str, tmp_path: Path) -> None:
    """Whether it has raised the finding or collected it."""
    path = tmp_path / "kernels.py"
    path.write_text(DOWN)
    from nkitools.kernel_file import asked

    with asked(str(path), "kernel") as this, nkitools.collect_runs() as runs, suppress(nkitools.KernelError):
        nkitools.simulate(this.kernel, *this.args, rules=rules)
    found = [each for each in findings_of_run(runs[-1]) if each["suggestions"]]
    assert [each["suggestions"][0]["tried"] for each in found] == ["NK403 gone"]
    assert len(runs) == 1
