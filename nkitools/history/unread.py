"""Tiles that are written and that nothing reads (NK513): work for nothing, or another tile is read by mistake."""

from __future__ import annotations

import numpy as np

from nkitools.record import rows
from nkitools.record.columns import Columns, distinct
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_ON_CHIP = ("SBUF", "PSUM")


def report_unread(columns: Columns, reporter: Reporter, *, named: bool = False) -> None:
    """Report NK513 once for each line that writes a tile which nothing reads, if the run shows all reads.

    ``named``: only tiles that the kernel has a name for. For the legacy dialect it is not documented which calls make a
    tile beside their result.
    """
    if not shows_what_is_read(columns, reporter):
        return
    record, writes = columns.record, columns.writes
    alone = columns.of_each_plan(lambda plan: sum(plan.written) == 1)[columns.positions]
    seen = {access.storage for access in record.outputs} | record.printed
    indices = np.frombuffer(record.beside.indices.tobytes(), np.int64).reshape(-1, 3)[:, 1]
    read = distinct(columns.storages[~writes]) | distinct(rows.storage_column(indices))
    lost = sorted(distinct(columns.storages[writes & alone]) - read)
    lines: set[int] = set()
    for storage in lost:
        known = record.storages.get(storage)
        if (
            known is None
            or known.memory not in _ON_CHIP
            or known.has_address
            or storage in seen
            or (named and not record.name_of(storage))
        ):
            continue
        mine = writes & (columns.storages == storage)
        if not alone[mine].all():  # the instruction may be there for another operand that it writes
            continue
        position = int(columns.positions[mine][-1])
        site = int(columns.sites[position])
        if site >= 0 and site not in lines:
            lines.add(site)
            _report(record, reporter, storage, position, site)


def shows_what_is_read(columns: Columns, reporter: Reporter) -> bool:
    """Return whether a run shows all reads, so that unread elements are a finding.

    It does not if it has no results of its own, found an error, or skipped a loop; nor without rules or instructions.
    """
    record = columns.record
    own = any(not record.storages[each.storage].is_given for each in record.outputs)
    stopped = record.skipped_loop or reporter.findings.has_error
    return own and not stopped and reporter.level != "off" and bool(columns.plans.size)


def _report(record: Record, reporter: Reporter, storage: int, position: int, site: int) -> None:
    known, name = record.storages[storage], record.name_of(storage)
    whose = f"`{name}` ({known.memory}" if name else f"a tile ({known.memory}"
    plan = record.row(position).plan
    with reporter.placed(record.sites[site]):
        report("NK513", f"{plan.name} writes {whose}, {known.dtype} {list(known.shape)}), which nothing reads")
