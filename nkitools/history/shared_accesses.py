"""Who touched what of the memory that the programs of a launch share: read from the record once they have ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from nkitools.chip.layout import Layout
from nkitools.chip.memory import LAYOUTS, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.record import Record

Program = tuple[int, ...]
_LOW = (1 << 32) - 1


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
    """The accesses to each storage in shared HBM, in the order of the record.

    Of equal ones of a program that no meeting separates only the first is there.
    """
    found: dict[int, dict[Any, SharedAccess]] = {}
    shared: dict[int, tuple[tuple[int, bool], ...]] = {}  # by plan: the words of its operands that matter
    stretches = _stretches(record)
    _, program, stretch = next(stretches)
    following = next(stretches)
    start, rows, plans = 0, record.rows, record.plans
    for position in range(record.count):
        while position >= following[0]:
            _, program, stretch = following
            following = next(stretches)
        number = rows[start] >> 32
        operands = shared.get(number)
        if operands is None:
            operands = shared[number] = _shared_operands(record, start)
        for operand, written in operands:
            word, byte_offset = rows[start + 1 + 2 * operand], rows[start + 2 + 2 * operand]
            part = record.parts.get(position, {}).get(operand)
            known = found.setdefault(word >> 32, {})
            if part is not None:
                lanes, chosen = part.lanes, part.rows
                whole = SharedAccess(program, position, part.layout, part.byte_offset, written, lanes, chosen)
                known[position, operand] = whole
                continue
            key = (stretch, program, word, byte_offset, written)
            if key not in known:
                values = tuple(record.values.get((stretch, program, word, byte_offset), ())) if written else ()
                layout = LAYOUTS[word & _LOW]
                known[key] = SharedAccess(program, position, layout, byte_offset, written, values=values)
        start += plans[number].words
    return {storage: list(accesses.values()) for storage, accesses in sorted(found.items())}


def _shared_operands(record: Record, start: int) -> tuple[tuple[int, bool], ...]:
    """The operands in shared HBM of the plan whose row begins at ``start``, which are the same in all of its rows."""
    planned = record.plans[record.rows[start] >> 32]
    if planned.plan.names_only:
        return ()
    words = record.rows[start + 1 : start + planned.words : 2]
    return tuple(
        (number, planned.plan.written[number])
        for number, word in enumerate(words)
        if LAYOUTS[word & _LOW].memory is MemoryRegion.shared_hbm
    )


def _stretches(record: Record) -> Iterator[tuple[int, Program, int]]:
    """From which position on a program runs, and how many meetings there have been; ends with a position never met."""
    program: Program = ()
    met = 0
    turns = ((position, 0, taken) for position, taken in record.programs)
    meetings = ((meeting.position, 1, ()) for meeting in record.meetings)
    for position, is_meeting, taken in sorted(chain(turns, meetings), key=lambda each: each[:2]):
        if is_meeting:
            met += 1
        else:
            program = taken
        yield position, program, met
    yield record.count, program, met
    yield record.count, program, met
