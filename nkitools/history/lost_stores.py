"""Stores into HBM that the next turn of their loop replaces unread (NK506): of a sum over K only the last one stays."""

from __future__ import annotations

import numpy as np

from nkitools.chip.memory_region import MEMORY_NAMES, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_HBM = frozenset(MEMORY_NAMES[each] for each in (MemoryRegion.private_hbm, MemoryRegion.shared_hbm))
_REMEDY = (
    "Sum up in one PSUM tile and store behind the loop, or index the output with the counter of the loop or of a block."
)


def report_lost_stores(columns: Columns, reporter: Reporter) -> None:
    """NK506, once for a line that stores several times into the same elements, which nothing reads in between."""
    record = columns.record
    stores = columns.of_plans(lambda plan: [each and plan.name == "dma_copy" for each in plan.written])
    storages = {each for each in columns.written_storages if _is_followed(record, each)}
    stores &= np.isin(columns.storages, list(storages))
    stores &= ~np.isin(columns.positions, np.frombuffer(record.beside.indices.tobytes(), np.int64).reshape(-1, 3)[:, 0])
    if np.count_nonzero(stores) < 2:
        return
    places = np.stack([columns.sites[columns.positions], columns.storages, columns.layouts, columns.byte_offsets])
    _, group, count = np.unique(places[:, stores], axis=1, return_inverse=True, return_counts=True)
    told = {-1}
    for number in np.flatnonzero(count > 1):
        operands = np.flatnonzero(stores)[group.reshape(-1) == number]
        site = int(columns.sites[columns.positions[operands[0]]])
        lost = 0 if site in told else _lost(columns, operands)
        if lost:
            told.add(site)
            _report(record, reporter, columns, int(operands[-1]), operands.size, lost)


def _is_followed(record: Record, storage: int) -> bool:
    known = record.storages.get(storage)
    return known is not None and known.memory in _HBM and storage not in record.printed


def _lost(columns: Columns, operands: Array) -> int:
    """Return how many of some stores are replaced by the next one, of the same program and of another value, unread."""
    storage, positions = int(columns.storages[operands[0]]), columns.positions[operands]
    reads = columns.positions[~columns.writes & (columns.storages == storage)]
    sources = columns.storages[operands + 1]  # of a copy the operand behind its destination
    lost = 0
    for first, second, source, other in zip(positions, positions[1:], sources, sources[1:], strict=False):
        if columns.record.program_at(int(first)) != columns.record.program_at(int(second)):
            continue
        written = columns.positions[columns.writes & (columns.storages == source)]
        is_new = source != other or bool(((written > first) & (written < second)).any())
        lost += is_new and not bool(((reads > first) & (reads <= second)).any())
    return lost


def _report(record: Record, reporter: Reporter, columns: Columns, operand: int, count: int, lost: int) -> None:
    storage, position = int(columns.storages[operand]), int(columns.positions[operand])
    known, name = record.storages[storage], record.name_of(storage)
    whose = f"`{name}`" if name else "a tensor"
    message = (
        f"dma_copy stores {count} times into the same elements of {whose} ({known.memory}, {known.dtype} "
        f"{list(known.shape)}), and {lost} of these stores are replaced by the next one before anything reads them"
    )
    with reporter.placed(record.sites[int(columns.sites[position])]):
        report("NK506", message, remedy=_REMEDY, facts={"instruction": "dma_copy"})
