"""Stores into HBM that the next turn of their loop replaces unread (NK506): of a sum over K only the last one stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from nkitools.chip.memory_region import MEMORY_NAMES, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import ascending
from nkitools.record.columns import Columns, distinct, programs_at
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_HBM = frozenset(MEMORY_NAMES[each] for each in (MemoryRegion.private_hbm, MemoryRegion.shared_hbm))
_REMEDY = (
    "Sum up in one PSUM tile and store behind the loop, or index the output with the counter of the loop or of a block."
)


def report_lost_stores(columns: Columns, reporter: Reporter) -> None:
    """Report NK506 once for each line that stores repeatedly into the same elements, with no read in between."""
    record = columns.record
    stores = np.flatnonzero(columns.of_plans(lambda plan: [each and plan.name == "dma_copy" for each in plan.written]))
    storages = {each for each in distinct(columns.storages[stores]) if _is_followed(record, each)}
    stores = stores[np.isin(columns.storages[stores], list(storages))]
    indirect = np.frombuffer(record.beside.indices.tobytes(), np.int64).reshape(-1, 3)[:, 0]
    stores = stores[~np.isin(columns.positions[stores], indirect)]
    if stores.size < 2:
        return
    places = (columns.storages, columns.layouts, columns.byte_offsets)
    chosen = np.stack([columns.sites[columns.positions[stores]], *(each[stores] for each in places)])
    order = np.lexsort(chosen[::-1])
    begins = np.flatnonzero((np.diff(chosen[:, order], axis=1) != 0).any(axis=0)) + 1
    edges = np.array([0, *begins, stores.size])
    several = np.flatnonzero(np.diff(edges) > 1)  # most of the many groups have one store
    together = [stores[order[begin:end]] for begin, end in zip(edges[several], edges[several + 1], strict=True)]

    @cache
    def touching(storage: int, *, writes: bool) -> Array:
        return np.asarray(columns.positions[(columns.writes == writes) & (columns.storages == storage)])

    reported = {-1}
    for operands in together:
        site = int(columns.sites[columns.positions[operands[0]]])
        lost = 0 if site in reported else _lost(columns, operands, touching)
        if lost:
            reported.add(site)
            _report(record, reporter, columns, int(operands[-1]), operands.size, lost)


def _is_followed(record: Record, storage: int) -> bool:
    known = record.storages.get(storage)
    return known is not None and known.memory in _HBM and storage not in record.printed


def _lost(columns: Columns, operands: Array, touching: Callable[..., Array]) -> int:
    """Return the number of stores whose elements the same program's next store replaces, unread, by other values."""
    storage, positions = int(columns.storages[operands[0]]), columns.positions[operands]
    sources = columns.storages[operands + 1]  # of a copy: the operand after its destination
    programs = programs_at(columns.record, positions)
    is_new = sources[1:] != sources[:-1]
    goes_on = np.zeros_like(is_new)  # the source is read again: a running sum, whose last value has all terms
    for source in ascending(sources[:-1]):
        here, between = sources[:-1] == source, (positions[:-1], positions[1:] - 1)
        is_new |= here & _any_between(touching(int(source), writes=True), *between)
        goes_on |= here & _any_between(touching(int(source), writes=False), *between)
    is_read = _any_between(touching(storage, writes=False), positions[:-1], positions[1:])
    return int(np.count_nonzero(is_new & ~goes_on & ~is_read & (programs[1:] == programs[:-1])))


def _any_between(positions: Array, behind: Array, until: Array) -> Array:
    """Return for each pair whether one of the ascending positions is greater than ``behind`` and at most ``until``."""
    return np.asarray(np.searchsorted(positions, behind, "right") < np.searchsorted(positions, until, "right"))


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
