"""The store of sweeps: one SQLite file with one row for each hash of everything that decides a case's results.

Outcomes from outside of a case, such as a missing file or a time limit, are stored but not reused.

Write-ahead logging keeps every committed row, even if the driver is killed, and lets several sweeps write.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

VERSION = 2
_FROM_OUTSIDE = ("error", "timeout")  # outcomes that another run may not have
_PATIENCE = 60.0  # seconds to wait for other sweeps
COLUMNS = (
    "hash", "kernel", "case_key", "code", "recipe", "versions", "values_json", "chip", "outcome", "findings", "error",
    "max_error", "low_precision", "remaining", "estimate_us", "seconds", "finished", "left_out",
)  # fmt: skip
_TABLES = Path(__file__).with_name("store.sql")
_FROM_VERSION_1 = ("ALTER TABLE cases ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0",)
_INSERT = f"INSERT OR REPLACE INTO cases ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"


class StoreError(ValueError):
    """The error of a file that is no store of sweeps, or of another version."""


class Store:
    """An open store. ``path`` None: a store in memory."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, must_exist: bool = False) -> None:
        self.path = ":memory:" if path is None else os.fspath(path)
        if must_exist and not Path(self.path).is_file():
            raise StoreError(f"{self.path} is no file")
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._open(must_exist=must_exist)
            except sqlite3.OperationalError as error:
                # SQLite waits for others at each statement, but not where the log is made, mended or taken away.
                if "locked" not in str(error) or time.monotonic() > until:
                    raise StoreError(f"{self.path} cannot be opened: {error}") from None
                time.sleep(0.02)
            except sqlite3.DatabaseError as error:
                raise StoreError(f"{self.path} is no store of sweeps: {error}") from None

    def _open(self, *, must_exist: bool) -> None:
        self._database = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            self._prepare(must_exist=must_exist)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, *, must_exist: bool) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")  # a crash of the machine may take the last rows
        version = self._version()
        if not version and must_exist:
            raise StoreError(f"{self.path} is no store of sweeps")
        if version < VERSION:
            with self._writing():
                version = self._version()  # another sweep may have made it in between
                tables = _TABLES.read_text(encoding="utf-8").split(";")[:-1]
                made = {0: tables, 1: _FROM_VERSION_1}.get(version, ())
                for statement in (*made, *[f"PRAGMA user_version = {VERSION}"] * (version < VERSION)):
                    self._database.execute(statement)
        if version > VERSION:
            raise StoreError(f"{self.path} is a store of version {version}; this nkitools has {VERSION}")

    def _version(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def begin(self, sweep: str, kernel: str, file: str, code: str, wanted: int, call: str = "") -> None:
        """Add a sweep without cases, unless it is there already.

        ``wanted``: the number of cases it will have. ``call``: the names of its functions.
        """
        with self._writing():
            self._database.execute(
                "INSERT OR IGNORE INTO sweeps VALUES (?, ?, ?, ?, ?, ?, ?)",
                (sweep, kernel, file, code, call, time.time(), wanted),
            )
            self._database.execute("DELETE FROM members WHERE sweep = ?", (sweep,))

    def join(self, sweep: str, hashes: Iterable[str]) -> None:
        """Add stored cases to a sweep."""
        with self._writing():
            self._join(sweep, hashes)

    def _join(self, sweep: str, hashes: Iterable[str]) -> None:
        self._database.executemany("INSERT OR IGNORE INTO members VALUES (?, ?)", ((sweep, each) for each in hashes))

    def done(self, hashes: Iterable[str]) -> set[str]:
        """Return the hashes whose cases are stored."""
        return {row[0] for row in self._where("SELECT hash FROM cases WHERE hash IN", hashes)}

    def reusable(self, case_keys: Iterable[str]) -> dict[str, set[str]]:
        """Return the hashes that are stored of cases, by their keys: without errors and timeouts."""
        found: dict[str, set[str]] = {}
        for key, each, outcome in self._where("SELECT case_key, hash, outcome FROM cases WHERE case_key IN", case_keys):
            if outcome not in _FROM_OUTSIDE:
                found.setdefault(key, set()).add(each)
        return found

    def rows_of(self, hashes: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the cases of hashes, by hash."""
        query = f"SELECT {', '.join(COLUMNS)} FROM cases WHERE hash IN"
        return {row["hash"]: row for row in map(_plain, self._where(query, hashes))}

    def _where(self, query: str, values: Iterable[str]) -> Iterator[Any]:
        """Yield the rows of a query that ends in IN."""
        waiting = iter(values)
        while part := list(islice(waiting, 500)):
            yield from self._database.execute(f"{query} ({', '.join('?' * len(part))})", part).fetchall()

    def add(self, rows: Iterable[Mapping[str, Any]], sweep: str | None = None) -> None:
        """Store cases of a sweep in one transaction; they replace cases with the same hash."""
        new = [[row[column] for column in COLUMNS] for row in rows]
        with self._writing():
            self._database.executemany(_INSERT, new)
            if sweep is not None:
                self._join(sweep, (row[0] for row in new))

    def rows(self, sweep: str | None = None) -> list[dict[str, Any]]:
        """Return the cases of a sweep, or all of them; findings and values as they were."""
        wanted = ", ".join(f"cases.{column}" for column in COLUMNS)
        query, given = f"SELECT {wanted} FROM cases", ()
        if sweep is not None:
            query, given = f"{query} JOIN members USING (hash) WHERE members.sweep = ?", (sweep,)  # type: ignore[assignment]
        return [_plain(row) for row in self._database.execute(query, given)]

    def sweeps(self) -> list[dict[str, Any]]:
        """Return the sweeps, the earliest first, each with the number of its cases that are stored."""
        names = ("sweep", "kernel", "file", "code", "call", "began", "wanted", "stored")
        query = (
            "SELECT sweeps.*, "
            "(SELECT count(*) FROM members JOIN cases USING (hash) WHERE members.sweep = sweeps.sweep) "
            "FROM sweeps ORDER BY began"
        )
        return [dict(zip(names, row, strict=True)) for row in self._database.execute(query)]

    def merge(self, other: str | os.PathLike[str]) -> int:
        """Add the cases and sweeps of another store, and return the number of new cases. StoreError if it is no store.

        If both have a case, the later one stays.
        """
        Store(other, must_exist=True).close()
        self._database.execute("ATTACH DATABASE ? AS other", (os.fspath(other),))
        try:
            with self._writing():
                count = "SELECT count(*) FROM cases"
                before = self._database.execute(count).fetchone()[0]
                self._database.execute(
                    "INSERT OR REPLACE INTO cases SELECT * FROM other.cases AS theirs WHERE NOT EXISTS "
                    "(SELECT 1 FROM cases WHERE hash = theirs.hash AND finished >= theirs.finished)"
                )
                new: int = self._database.execute(count).fetchone()[0] - before
                for table in ("sweeps", "members"):
                    self._database.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table}")
        finally:
            self._database.execute("DETACH DATABASE other")
        return new

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the file for one transaction, which is there whole or not at all."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def _plain(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(COLUMNS, row, strict=True))
    found["values"] = json.loads(found.pop("values_json"))
    found["findings"] = [] if found["findings"] == "[]" else json.loads(found["findings"])
    return found
