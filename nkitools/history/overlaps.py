"""Instructions that overwrite elements which they still have to read (NK510).

An engine and a DMA read and write element after element, and the documents promise no order. Source and destination may
be the same elements in the same places. Shifted or permuted, a part of the source may be overwritten before it is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_IN_PLACE = frozenset({"same", "transpose"})
"""The kinds of element rules by which one element of the source makes one of the destination."""

_COPIES = frozenset({"tensor_copy", "dma_copy"})
"""Instructions that copy: an element that is overwritten by itself keeps its value, even if others need it too."""

_MOST = 1 << 22  # elements of a view that is looked at


def report_overlaps(columns: Columns, reporter: Reporter) -> None:
    """Report NK510 once for each line and plan."""
    record = columns.record
    seen: set[tuple[int, int]] = set()
    for position in _suspects(columns):
        row = record.row(position)
        if (row.plan.id, row.site) in seen:
            continue
        found = _overlap(record, row)
        if found is not None:
            seen.add((row.plan.id, row.site))
            _report(record, reporter, row, *found)


def _suspects(columns: Columns) -> list[int]:
    """Return the first instruction of each form that reads and writes one storage, by two views or transposed."""
    may = columns.of_each_plan(_may_overlap)
    turns = columns.of_each_plan(lambda plan: "transpose" in _in_place(plan))  # onto its own view, too
    counts = np.diff(columns.first_operands)
    found: set[int] = set()
    for number in range(1, int(counts[may].max(initial=0))):
        positions = np.flatnonzero(may & (counts > number))
        found |= _overlapping(columns, positions, number, turns)
    return sorted(found)


def _overlapping(columns: Columns, positions: Array, number: int, turns: Array) -> set[int]:
    """Return the first instruction of each form whose operand ``number`` is another view of the destination's tensor.

    ``positions``: the instructions to look at. ``turns``: a mask of those that transpose, for which the same view
    counts.
    """
    layouts, byte_offsets = columns.layouts, columns.byte_offsets
    first = columns.first_operands[positions]
    same = columns.storages[first + number] == columns.storages[first]
    positions, first = positions[same], first[same]
    moved = (layouts[first + number] != layouts[first]) | (byte_offsets[first + number] != byte_offsets[first])
    differ = moved | turns[positions]
    if not differ.any():
        return set()
    positions, first = positions[differ], first[differ]
    other = first + number
    forms = np.stack((
        columns.heads[positions], layouts[other], layouts[first], byte_offsets[other] - byte_offsets[first],
    ))  # fmt: skip
    _, once = np.unique(forms, axis=1, return_index=True)
    return set(positions[once].tolist())


def _may_overlap(plan: Any) -> bool:
    """Return whether a plan makes each element of its first result of one element of an operand."""
    return bool(plan.written) and plan.written[0] and not plan.names_only and not plan.touches and bool(_in_place(plan))


def _in_place(plan: Any) -> frozenset[str]:
    """Return the kinds of `_IN_PLACE` by which a plan makes its first result of operands of this core."""
    made = dict(plan.elements.made).get(plan.operands[0], ()) if plan.operands else ()
    return frozenset(rule.kind for source, rule in made if source.rank is None and source.core is None) & _IN_PLACE


def _overlap(record: Record, row: Any) -> tuple[int, Any] | None:
    """Return the number of an operand that may be overwritten unread, and a mask of the elements; None for none."""
    names, accesses = row.plan.operands, row.accesses()
    target = accesses[0]
    if any(record.beside.part(row.position, operand) for operand in range(len(accesses))):
        return None
    for source, rule in dict(row.plan.elements.made)[names[0]]:
        if (
            rule.kind not in _IN_PLACE
            or source.rank is not None
            or source.core is not None
            or source.operand not in names
        ):
            continue
        operand = names.index(source.operand)
        access = accesses[operand]
        if access.written or access.storage != target.storage or access.layout.elements > _MOST:
            continue
        turns, copies = rule.kind == "transpose", row.plan.name in _COPIES
        wrong = _shifted(access.layout, access.byte_offset, target.layout, target.byte_offset, turns, copies)
        if wrong is not None:
            return operand, wrong
    return None


def _shifted(of: Layout, first: int, into: Layout, begin: int, turns: bool, copies: bool) -> Any:
    """Return a mask of the source elements that other elements overwrite; None if there are none.

    ``turns``: whether the instruction transposes. ``copies``: whether it only copies.
    """
    from nkitools.record.last_writer import bytes_of

    read, written = (first + bytes_of(of)).reshape(-1), (begin + bytes_of(into)).reshape(-1)
    if turns:
        size = of.shape[0]
        written = written.reshape(-1, size).T.reshape(-1) if written.size % size == 0 else written
    if read.size != written.size or np.array_equal(read, written):
        return None
    apart = read != written
    wrong = np.isin(read, written[apart] if copies else written) & apart
    return wrong.reshape(of.shape) if wrong.any() else None


def _report(record: Record, reporter: Reporter, row: Any, operand: int, wrong: Any) -> None:
    name = record.name_of(row.access(0).storage) or "a tensor"
    role = row.plan.operands[operand]
    message = (
        f"{row.plan.name}: `{row.plan.operands[0]}` and `{role}` share elements of `{name}` in other places: "
        f"{boxes_text(role, wrong)} is overwritten by other elements of the same instruction"
    )
    with reporter.placed(record.sites[row.site]):
        report("NK510", message)
