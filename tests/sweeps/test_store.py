"""The store: one row for each hash, whatever happens."""

from __future__ import annotations

import csv
import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nkitools.sweeps.export import export
from nkitools.sweeps.store import COLUMNS, Store, StoreError


def row(number: int, **fields: Any) -> dict[str, Any]:
    """A row of a store."""
    made = {**dict.fromkeys(COLUMNS, ""), **dict.fromkeys(("max_error", "low_precision", "remaining"), 0.5)}
    made |= {"hash": f"h{number}", "values_json": f'{{"n": {number}}}', "findings": "[]", "outcome": "pass"}
    return {**made, "estimate_us": 1.0, "seconds": 0.1, "finished": 1.0, "left_out": 0, **fields}


def test_a_hash_is_stored_once_and_the_last_row_stays(tmp_path: Path) -> None:
    """A second row of a hash takes the place of the first; a closed store has all rows again."""
    with Store(tmp_path / "s.db") as store:
        store.begin("one", "kernel", "file", "code", 3)
        store.add([row(1, outcome="error"), row(2)], "one")
        store.add([row(1), row(2)], "one")
        assert store.done(["h1", "h2", "h3"]) == {"h1", "h2"}
    with Store(tmp_path / "s.db", must_exist=True) as store:
        assert [(each["hash"], each["outcome"], each["values"]) for each in store.rows("one")] == [
            ("h1", "pass", {"n": 1}),
            ("h2", "pass", {"n": 2}),
        ]
        assert [(each["wanted"], each["stored"]) for each in store.sweeps()] == [(3, 2)]


def test_errors_and_timeouts_are_not_reused(tmp_path: Path) -> None:
    """By the key of a case the store has the hashes of results; a case that another store key has is not among them."""
    with Store(tmp_path / "s.db") as store:
        outcomes = ("pass", "wrong", "finding", "error", "timeout")
        store.add([row(number, outcome=each, case_key="mine") for number, each in enumerate(outcomes)])
        store.add([row(9, case_key="other")])
        assert store.reusable(["mine", "none"]) == {"mine": {"h0", "h1", "h2"}}


def test_a_sweep_that_begins_again_has_no_cases_yet(tmp_path: Path) -> None:
    """Its former cases stay stored; those that it confirms are its own again."""
    with Store(tmp_path / "s.db") as store:
        store.begin("one", "kernel", "file", "code", 2)
        store.add([row(1), row(2)], "one")
        store.begin("one", "kernel", "file", "code", 2)
        assert store.rows("one") == []
        store.join("one", ["h2"])
        assert [each["hash"] for each in store.rows("one")] == ["h2"]
        assert sorted(store.rows_of(["h1", "h2", "h3"])) == ["h1", "h2"]


def test_rows_that_fail_together_are_all_left_out(tmp_path: Path) -> None:
    """A transaction is there whole or not at all, and the store is free afterwards."""
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(KeyError):
            store.add([row(1), {"hash": "h2"}])
        assert store.rows() == []
        store.add([row(3)])
        assert [each["hash"] for each in store.rows()] == ["h3"]


def write_rows(path: Path, start: int) -> None:
    with Store(path) as store:
        for number in range(start, start + 200):
            store.add([row(number)])


@pytest.mark.process
def test_two_writers_share_a_store(tmp_path: Path) -> None:
    """Each row of either is there once, those of both once, too."""
    context = multiprocessing.get_context("spawn")  # JAX, where a test has imported it, forbids forks
    writers = [context.Process(target=write_rows, args=(tmp_path / "s.db", start)) for start in (0, 100)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0, 0]
    with Store(tmp_path / "s.db") as store:
        assert sorted(int(each["hash"][1:]) for each in store.rows()) == list(range(300))


def test_merging_takes_over_what_is_new(tmp_path: Path) -> None:
    """Cases, sweeps and their members; of a case that both have the later one stays, the own one of two of one time."""
    with Store(tmp_path / "a.db") as one, Store(tmp_path / "b.db") as other:
        one.add([row(1), row(2)])
        other.begin("two", "kernel", "file", "code", 2)
        other.add([row(1, outcome="wrong", finished=2.0), row(2, outcome="wrong"), row(3)])
        other.join("two", ["h2", "h3"])
        assert one.merge(tmp_path / "b.db") == 1
        assert {each["hash"]: each["outcome"] for each in one.rows()} == {"h1": "wrong", "h2": "pass", "h3": "pass"}
        assert [each["hash"] for each in one.rows("two")] == ["h2", "h3"]
        assert one.merge(tmp_path / "b.db") == 0


def test_another_file_is_refused(tmp_path: Path) -> None:
    """A text, a database of others, a store of a later version, and no file at all: one sentence each."""
    (tmp_path / "text").write_text("hello, this is no database " * 50)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("PRAGMA user_version = 99")
    later.commit()
    later.close()
    for name, said in (
        ("text", "is no store of sweeps"),
        ("other.db", "is no store of sweeps"),
        ("later.db", "is a store of version 99"),
        ("none", "is no file"),
    ):
        with pytest.raises(StoreError, match=said):
            Store(tmp_path / name, must_exist=True)


def test_csv_and_parquet_have_a_column_for_each_name(tmp_path: Path) -> None:
    """A name that a store has too keeps its own column; cases without a name have none there."""
    rows = []
    with Store() as store:
        store.add([row(1), row(2, values_json='{"kernel": "mine", "shape": [1, 2]}')])
        rows = store.rows()
    assert export(rows, tmp_path / "s.csv") == 2
    with (tmp_path / "s.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(each["n"], each["kernel"], each["shape"], each["outcome"], each["kernel_"]) for each in table] == [
        ("1", "", "", "pass", ""),
        ("", "mine", "[1, 2]", "pass", ""),
    ]
    with pytest.raises(ValueError, match=r"write \.csv or \.parquet"):
        export(rows, tmp_path / "s.xlsx")
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export(rows, tmp_path / "s.parquet") == 2
    assert parquet.read_table(tmp_path / "s.parquet").column("n").to_pylist() == [1, None]


def test_a_store_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    """Its cases stay, with no element left out; so are those of a store that is merged."""
    for name in ("a.db", "b.db"):
        with Store(tmp_path / name) as store:
            store.begin("one", "kernel", "file", "code", 1)
            store.add([row(1 if name == "a.db" else 2)], "one")
        with closing(sqlite3.connect(tmp_path / name)) as database:
            database.execute("ALTER TABLE cases DROP COLUMN left_out")
            database.execute("PRAGMA user_version = 1")
    with Store(tmp_path / "a.db", must_exist=True) as store:
        assert store.merge(tmp_path / "b.db") == 1
        store.add([row(3, left_out=5)], "one")
        assert [(each["hash"], each["left_out"]) for each in store.rows("one")] == [("h1", 0), ("h2", 0), ("h3", 5)]
