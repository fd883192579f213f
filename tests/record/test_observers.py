"""Observers of a record see what happens in a run, in order; a record without any takes instructions as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.memory import Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.launch import programs
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Row
from nkitools.record.source_sites import KernelLines

X = np.arange(8, dtype=np.float32).reshape(2, 4)


class Noted(Observer):
    """An observer that notes what it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def allocated(self, record: Record, storage: Storage) -> None:
        self.seen.append(("allocated", storage.shape, storage.id in record.storages))

    def issued(self, record: Record, row: Row) -> None:
        written = [record.name_of(access.storage) for access in row.writes()]
        self.seen.append(("issued", row.position, record.count, row.plan.name, written))

    def printed(self, record: Record) -> None:
        self.seen.append(("printed", len(record.prints)))

    def returned(self, record: Record, tensors: Sequence[NkiTensor]) -> None:
        self.seen.append(("returned", [each.shape for each in tensors], len(record.outputs)))


@contextmanager
def observed_by(monkeypatch: pytest.MonkeyPatch, observer: Observer) -> Iterator[None]:
    """Let an observer look at the records of the runs inside."""

    def record(lines: KernelLines) -> Record:
        made = Record(lines)
        made.observe(observer)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(programs, "watched_record", record)
        yield


def kernel(x: Any) -> Any:
    tile = nl.load(x)
    nl.device_print("tile", tile)
    nisa.tensor_copy(dst=tile, src=tile)
    return x


def test_an_observer_sees_all_that_happens_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument, the tile, both instructions with their rows, the print before it is kept, the result."""
    noted = Noted()
    with observed_by(monkeypatch, noted):
        run = nkitools.simulate(kernel, X)
    assert noted.seen == [
        ("allocated", (2, 4), True),
        ("allocated", (2, 4), True),
        ("issued", 0, 1, "dma_copy", ["tile"]),
        ("printed", 0),
        ("issued", 1, 2, "tensor_copy", ["tile"]),
        ("returned", [(2, 4)], 1),
    ]
    assert run.record is not None
    assert run.record.observers == ()


def test_a_record_without_observers_takes_instructions_as_they_are() -> None:
    """An instruction is its row alone, which its line may add, until an observer looks on."""
    record = Record()
    assert record.only_adds
    record.observe(Observer())
    assert not record.only_adds


def test_an_observer_that_overrides_nothing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run under it has the same instructions and results."""
    alone = nkitools.simulate(kernel, X)
    with observed_by(monkeypatch, Observer()):
        observed = nkitools.simulate(kernel, X)
    assert list(observed.instructions) == list(alone.instructions)
    np.testing.assert_array_equal(observed.outputs, alone.outputs)
