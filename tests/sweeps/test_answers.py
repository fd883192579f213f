"""The answers of a sweep: map, clusters, Pareto front, regressions, the smallest failing case."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from nkitools.sweeps.answers import clusters, pareto, pass_map, regressions
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.smallest import as_test, smallest
from nkitools.sweeps.store import Store
from nkitools.sweeps.sweep import run_cases
from tests import cases
from tests.sweeps.scaled_kernel import arguments, reference, scaled
from tests.sweeps.test_store import row


def stored(outcome: str = "pass", chip: str = "trn2", estimate: float = 1.0, error: float = 0.0, **values: Any) -> Any:
    made = {"values": values, "chip": chip, "outcome": outcome, "findings": [], "error": "", "max_error": error}
    return {**made, "estimate_us": estimate, "case_key": json.dumps([chip, values])}


def test_the_map_is_over_the_names_that_matter_most() -> None:
    """Two of three names decide; each cell counts passing cases of all, in the order of the values."""
    rows = [
        stored("pass" if m < 200 and n != 3 else "wrong", m=m, n=n, seed=seed)
        for m in (100, 200, 30)
        for n in (3, 20)
        for seed in range(4)
    ]
    found = pass_map(rows)
    assert found is not None
    assert set(found.names) == {"m", "n"}
    named = pass_map(rows, ["m", "n"])
    assert named is not None
    assert (named.rows, named.columns) == (["30", "100", "200"], ["3", "20"])
    assert named.cells["30", "20"] == named.cells["100", "20"] == (4, 4)
    assert named.cells["30", "3"] == named.cells["200", "20"] == (0, 4)
    assert pass_map([stored(m=1)]) is None
    with pytest.raises(ValueError, match="k is no name of this sweep; it has m, n, seed, chip"):
        pass_map(rows, ["k"])


def test_a_long_axis_has_steps_of_neighbours() -> None:
    """No more than sixteen, each case in one of them."""
    found = pass_map([stored(m=m, n=n) for m in range(100) for n in (1, 2)], ["m", "n"])
    assert found is not None
    assert len(found.rows) <= 16
    assert found.rows[0] == "0..6"
    assert sum(total for _, total in found.cells.values()) == 200


def test_failures_alike_are_one_cluster_with_its_smallest_case() -> None:
    """By rule and line, by message, or as wrong results."""
    at = {"rule": "NK101", "severity": "error", "file": "/x/k.py", "line": 7, "message": ""}
    rows = [
        *({**stored("finding", m=m), "findings": [{**at, "severity": "hint", "line": 1}, at]} for m in (500, 129, 300)),
        {**stored("error", m=9), "error": "ValueError: no\nmore"},
        stored("wrong", m=3),
        stored(m=1),
    ]
    found = [(each.outcome, each.what, each.count, each.smallest["values"]["m"]) for each in clusters(rows)]
    assert found[0] == ("finding", "NK101 at k.py:7", 3, 129)
    assert set(found[1:]) == {("error", "ValueError: no", 1, 9), ("wrong", "differs from the reference", 1, 3)}


def test_the_front_has_the_cases_that_none_beats_in_both() -> None:
    """The fastest first; failing cases are left out."""
    rows = [
        stored(estimate=5.0, error=0.1, n=0),
        stored(estimate=7.0, error=0.1, n=1),
        stored(estimate=9.0, error=0.0, n=2),
        stored(estimate=6.0, error=0.2, n=3),
        stored("wrong", estimate=1.0, error=0.0, n=4),
    ]
    assert [each["values"]["n"] for each in pareto(rows)] == [0, 2]


def test_regressions_are_lost_cases_then_slower_ones() -> None:
    """By how much; a case that is new, mended or a little slower is none."""
    before = [stored(n=0), stored(n=1), stored(n=2), stored("wrong", n=3), stored(n=4)]
    now = [
        stored("wrong", n=0), stored(estimate=1.2, n=1), stored(estimate=2.0, n=2), stored(n=3),
        stored(estimate=1.04, n=4),
        stored("wrong", n=5),
    ]  # fmt: skip
    assert [new["values"]["n"] for _, new in regressions(before, now)] == [0, 2, 1]


def test_the_smallest_failing_case_is_a_test(tmp_path: Path) -> None:
    """Made smaller by runs, as long as it fails at the same line; the file's text has the mark with that case."""
    call = CheckedCall(scaled, "nki", arguments, reference)
    values = {"rows": 100, "columns": 300, "seed": 3, "spoil": 2}
    (found,) = run_cases(call, [Case(values, "trn2")], InProcess()).rows
    assert found["outcome"] == "wrong"
    small = smallest(call, {**found, "values": values})
    assert small == {"rows": 1, "columns": 1, "seed": 0, "spoil": 1}
    text = as_test(call, small, "trn2", "wrong")
    compile(text, "test", "exec")
    assert "from tests.sweeps.scaled_kernel import arguments, reference, scaled" in text
    assert "{'rows': [1], 'columns': [1], 'seed': [0], 'spoil': [1]}" in text


@pytest.mark.process
def test_the_report_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal, as a page, as data, and as a test of the smallest failing case."""
    monkeypatch.chdir(tmp_path)
    space = {"rows": [1, 128, 129], "factor": [0.5, 3.0]}
    nkitools.sweep(scaled, space, arguments=arguments, reference=reference, store="s.db", workers=1, chips="trn2")
    done = CliRunner().invoke(main, ["sweep", "report", "s.db", "--page", "s.html", "--test", "test_small.py"])
    lines = done.output.splitlines()
    assert lines[0] == "scaled: 6 cases: 2 finding, 4 pass"
    assert any(line.startswith("       2  finding: NK101 at scaled_kernel.py:") for line in lines)
    assert lines[-1] == "test_small.py: rows=129, factor=0.5 on trn2"
    page = (tmp_path / "s.html").read_text()
    assert "NK101 at scaled_kernel.py:" in page
    assert "http" not in page.partition("</style>")[2]
    compile((tmp_path / "test_small.py").read_text(), "test_small.py", "exec")
    (plain,) = json.loads(CliRunner().invoke(main, ["sweep", "report", "s.db", "--json"]).output)
    assert (plain["total"], plain["missing"], plain["outcomes"]) == (6, 0, {"finding": 2, "pass": 4})
    assert " 6 of 6 cases " in CliRunner().invoke(main, ["sweep", "report", "s.db", "--list"]).output
    assert CliRunner().invoke(main, ["sweep", "report", "s.db", "--kernel", "x"]).exit_code == 2


@pytest.mark.soak
def test_many_rows(tmp_path: Path) -> None:
    """They are written and reported, 100,000 in a soak; the seconds are shown by -s."""
    count = 100_000 if cases.FULL else 2_000
    rows = [row(n, values_json=json.dumps({"m": n % 40, "n": n // 40}), seconds=0.1) for n in range(count)]
    with Store(tmp_path / "s.db") as store:
        store.begin("one", "kernel", "file", "code", count)
        began = time.process_time()
        for start in range(0, len(rows), 1000):
            store.add(rows[start : start + 1000], "one")
        written = time.process_time() - began
    began = time.process_time()
    done = CliRunner().invoke(main, ["sweep", "report", str(tmp_path / "s.db")])
    print(f"written in {written:.2f} s, reported in {time.process_time() - began:.2f} s of processor time")
    assert done.output.startswith(f"kernel: {count} cases: {count} pass")


KERNEL_FILE = """
import nki
import nki.language as nl
import numpy as np

@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out

space = {"n": [4]}
arguments = lambda n: (np.ones((4, n), np.float32),)
reference = lambda x: x
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "kernel.py::copied", "--workers", "1", "--store", "text.db"), "text.db is no store of sweeps: "),
        (("run", "kernel.py::copied", "--workers", "1", "--store", "none/s.db"), "none/s.db cannot be opened: "),
        (("report", "text.db"), "text.db is no store of sweeps: "),
        (("merge", "none/s.db", "text.db"), "none/s.db cannot be opened: "),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_store_that_cannot_be_used_is_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2; whichever command opens it says the same."""
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("no database\n" * 100)
    Path("kernel.py").write_text(KERNEL_FILE)
    done = CliRunner().invoke(main, ["sweep", *words])
    assert (done.exit_code, done.stderr.startswith(f"Error: {said}"), done.stderr.count("\n")) == (2, True, 1)


def test_a_store_that_finds_no_room_later_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQLite says of a full disk, with the name of the store and exit code 2."""
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(KERNEL_FILE)

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Store, "begin", full)
    done = CliRunner().invoke(main, ["sweep", "kernel.py::copied", "--workers", "1", "--store", "s.db"])
    assert (done.exit_code, done.stderr) == (2, "Error: s.db cannot be read or written: database or disk is full\n")
