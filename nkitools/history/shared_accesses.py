"""The accesses to the memory that the programs of a launch share: read from the record once they have ended."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from nkitools.chip.layout import Layout
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.record import Record
from nkitools.record.rows import Row

Program = tuple[int, ...]


class SharedAccess(NamedTuple):
    """An instruction's access to shared HBM: by whom, when, to which view, and of that which elements.

    ``lanes`` is a mask over the view, ``rows`` chooses in its dimension 0; None: all of it. ``values``: checksums of
    what was written one after the other, where they are known; ``replicated``: all programs write the same to this
    view.
    """

    program: Program
    position: int
    layout: Layout
    byte_offset: int
    written: bool
    lanes: Array | None = None
    rows: Array | None = None
    values: tuple[int, ...] = ()
    replicated: bool = False


def shared_accesses(record: Record) -> dict[int, list[SharedAccess]]:
    """Return the accesses to each storage in shared HBM, in the order of the record.

    Of equal ones of a program that no meeting separates only the first is there.
    """
    found: dict[int, dict[Any, SharedAccess]] = {}
    shared: dict[int, tuple[int, ...]] = {}  # by plan: its operands that matter
    meetings = [meeting.position for meeting in record.meetings]
    for row in record.rows_between():
        position = row.position
        operands = shared.get(row.plan.id)
        if operands is None:
            operands = shared[row.plan.id] = _shared_operands(row)
        if operands:
            program, stretch = record.program_at(position), bisect_right(meetings, position)
        for operand in operands:
            access = row.access(operand)
            part = record.beside.part_as_run(position, operand)
            known = found.setdefault(access.storage, {})
            if part is not None:
                lanes, chosen = part.lanes, part.rows
                whole = SharedAccess(program, position, part.layout, access.byte_offset, access.written, lanes, chosen)
                known[position, operand] = whole
                continue
            key = (stretch, program, access)
            if key not in known:
                values = tuple(record.values.get(key, ())) if access.written else ()
                known[key] = SharedAccess(program, position, *access[1:], values=values)
    return {storage: list(accesses.values()) for storage, accesses in sorted(found.items())}


def _shared_operands(row: Row) -> tuple[int, ...]:
    """Return the operands in shared HBM of an instruction, which are the same in all rows of its plan."""
    if row.plan.names_only:
        return ()
    accesses = enumerate(row.accesses())
    return tuple(number for number, access in accesses if access.layout.memory is MemoryRegion.shared_hbm)
