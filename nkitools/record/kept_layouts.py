"""The layouts that are in use: those of records, and those that other objects refer to.

Records name layouts by number. So layouts are forgotten only between runs, after a look at each record in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol
from weakref import ref

from nkitools.chip import layout
from nkitools.facts.kept import on_forget

LEAST = 1024  # layouts, from which on those of no use are looked for

_lock = Lock()


class Names(Protocol):
    """An object that names layouts by number: a record."""

    def layout_numbers(self) -> set[int]:
        """Return the numbers of the layouts that the object names, and maybe others."""


class _Kept:
    """The records that there are, how many runs go on, and how many layouts may be there before the next look."""

    def __init__(self) -> None:
        self.records: set[ref[Names]] = set()  # that there are; the set of `weakref` takes three times as long
        self.runs = 0
        self.most = LEAST


_kept = _Kept()


def note_record(record: Names) -> None:
    """Keep the layouts that a record will name."""
    _kept.records.add(ref(record, _kept.records.discard))


def begin_run() -> None:
    """Keep all layouts until `end_run`; if there are too many, first forget the unused ones."""
    with _lock:
        if len(layout.LAYOUTS) > _kept.most:
            _forget_unused()
        _kept.runs += 1


def _forget_unused() -> None:
    """Forget the layouts that no record names and nothing else refers to, unless a run goes on."""
    if not _kept.runs:
        records = [record for each in list(_kept.records) if (record := each()) is not None]
        layout.forget_unused({number for record in records for number in record.layout_numbers()})
        _kept.most = max(LEAST, 2 * len(layout.LAYOUTS))


def end_run() -> None:
    """Note that a run has ended."""
    with _lock:
        _kept.runs -= 1


@contextmanager
def layouts_in_use() -> Iterator[None]:
    """Keep all layouts while the block runs, as a run does."""
    begin_run()
    try:
        yield
    finally:
        end_run()


def _forget() -> None:
    with _lock:
        _forget_unused()


on_forget(_forget)
