"""The accesses of programs to the memory that they share, read from the record once all programs have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nkitools.chip.memory_region import MEMORY_NAMES, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.history.epochs import Program
from nkitools.record.columns import Columns, program_numbers
from nkitools.record.dataflow.accesses import Accesses, distinct, row_lengths
from nkitools.record.dataflow.elements import Forms
from nkitools.record.dataflow.last_accesses import MAY_WRITE, WRITES
from nkitools.record.dataflow.pieces import View, pieces_of
from nkitools.record.record import Record
from nkitools.record.rows import Access


class SharedAccess(NamedTuple):
    """An instruction's access to a storage in shared HBM."""

    program: Program
    position: int
    view: View
    written: bool
    values: tuple[int, ...]  # checksums of the values written one after the other, if known
    replicated: bool = False  # all programs write the same to this view


class SharedStorage(NamedTuple):
    """A storage that several programs access, one of them writing."""

    storage: int
    accesses: list[SharedAccess]  # in the order of the record
    pieces: dict[View, Array]  # by view: the numbers of its pieces; every view touches a piece whole or not at all


def shared_storages(record: Record, columns: Columns) -> Iterator[SharedStorage]:
    """Yield the storages in shared HBM that programs may race for.

    Of a program's equal accesses between two meetings only the first is kept.
    """
    name = MEMORY_NAMES[MemoryRegion.shared_hbm]
    shared = [storage for storage, known in record.storages.items() if known.memory == name]
    if not shared:
        return
    accesses = Accesses(record, columns, as_run=True)
    accesses.take(np.flatnonzero(np.isin(accesses.storages, shared)))
    written = (accesses.kinds & (WRITES | MAY_WRITE)) != 0
    programs = program_numbers(record, accesses.positions)
    stretches = np.searchsorted([meeting.position for meeting in record.meetings], accesses.positions, "right")
    for storage in np.unique(accesses.storages[written]).tolist():
        mine = np.flatnonzero(accesses.storages == storage)
        if np.unique(programs[mine]).size < 2:
            continue
        which = accesses.views.which[mine]
        firsts, _, _ = distinct((stretches[mine], programs[mine], which, written[mine]))
        members = np.unique(which)
        shown = accesses.shown(members, accesses.views.byte_offsets[members])
        pieces = pieces_of(shown, row_lengths(record.storages[storage]), Forms())
        views = dict(zip(members.tolist(), shown, strict=True))
        rows = np.stack((accesses.positions[mine], which, written[mine], stretches[mine]), axis=1)[np.sort(firsts)]
        yield SharedStorage(
            storage,
            [
                _access(record, storage, position, views[view], bool(is_written), stretch)
                for position, view, is_written, stretch in rows.tolist()
            ],
            pieces.by_view(shown),
        )


def _access(record: Record, storage: int, position: int, view: View, written: bool, stretch: int) -> SharedAccess:
    program, values = record.program_at(position), list[int]()
    if written:
        layout = view.layout if view.part is None else view.part.layout
        place = Access(storage, layout, view.byte, written=True)
        values = record.values.get((stretch, program, place, view.part), [])
    return SharedAccess(program, position, view, written, tuple(values))
