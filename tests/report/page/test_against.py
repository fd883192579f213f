"""The page of `nkitools diff FIRST SECOND --page`: lines, turns and tiles that differ from the other run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from kernels.nki.softmax import softmax
from nkitools.cli import main
from tests.report.page import planted
from tests.report.page.browser import Reader
from tests.report.page.test_truth import watched


def test_the_page_begins_where_the_runs_part(reader: Reader, tmp_path: Path) -> None:
    """A fault of one turn: the page opens on its line and turn, beside the other run's tile and the difference."""
    module, line = planted.module_of("softmax", tmp_path)
    (logits,) = planted.arguments("softmax")
    right, wrong = watched(softmax, logits), watched(module.softmax, logits)
    right.save(tmp_path / "right.json")
    wrong.save(tmp_path / "wrong.json")
    paths = [str(tmp_path / name) for name in ("page.html", "right.json", "wrong.json")]
    result = CliRunner().invoke(main, ["diff", "--page", *paths], catch_exceptions=False)
    assert result.exit_code == 1
    reader.open(Path(paths[0]))
    assert reader.line() == line
    assert reader.turn()["start"] == "256"
    turns = reader.driver.execute_script(
        """const { differs, run, turnText } = window.nkitools;
        return [...differs.values()].map(({ position: at }) =>
            [at, turnText(run.instructions.loops[at], run.instructions.program[at])]);"""
    )
    apart = [
        at
        for at, (one, other) in enumerate(zip(right.writes, wrong.writes, strict=True))
        if not np.array_equal(one.value, other.value, equal_nan=True)
    ]
    assert [at for at, _ in turns] == [wrong.writes[at].position for at in apart]
    assert {text for _, text in turns} == {"start=256"}
    assert "differ from right.json: the first the worst" in " ".join(reader.text(".beside-run").split())
    first = wrong.writes[apart[0]]
    mine, other = first.value, right.writes[apart[0]].value
    reader.click(".beside-run .link", "the worst")
    worst = np.unravel_index(np.argmax(np.abs(mine - other)), mine.shape)
    assert f"[{worst[0]}, {worst[1]}]" in reader.text(".facts")
    assert re.search(r"\d+ writes differ from right.json", reader.text(".overview"))


def test_equal_runs_are_green(reader: Reader, tmp_path: Path) -> None:
    """Nothing is red where the two runs are the same."""
    run = watched(softmax, *planted.arguments("softmax"))
    run.save(tmp_path / "one.json")
    paths = [str(tmp_path / name) for name in ("page.html", "one.json", "one.json")]
    assert CliRunner().invoke(main, ["diff", "--page", *paths], catch_exceptions=False).exit_code == 0
    reader.open(Path(paths[0]))
    assert reader.text("header.top .pill") == "agrees with one.json"
    assert "No write differs from one.json" in reader.text(".card.good")
    assert reader.all(".pill.bad, .card.error, .line.wrong") == []
