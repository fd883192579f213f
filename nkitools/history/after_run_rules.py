"""The rules over the history of a whole run, which are checked once all programs have ended."""

from __future__ import annotations

from nkitools.chip.dialect_semantics import DialectSemantics
from nkitools.facts.generations import Generation
from nkitools.history.capacity import report_capacity
from nkitools.history.device_loops import report_unequal_turns, report_unrolled
from nkitools.history.lost_stores import report_lost_stores
from nkitools.history.overlaps import report_overlaps
from nkitools.history.short_writes import short_writes
from nkitools.history.speed import report_speed
from nkitools.record.columns import Columns
from nkitools.record.reporter import Reporter


def judge(
    columns: Columns, reporter: Reporter, chip: Generation, dialect: DialectSemantics, *, spills: bool = True
) -> None:
    """Report NK108, NK202, NK203, NK506, NK510, NK511, NK514, NK701 to NK704, NK709; of several programs NK502, NK508.

    Nothing is checked under ``rules="off"``. ``spills``: the compiler may move tensors of SBUF to HBM.
    """
    if reporter.level == "off":
        return
    record = columns.record
    if record.keeps_parts:  # of several programs
        from nkitools.history.races import report_races

        report_races(record, columns, reporter)
    report_overlaps(columns, reporter)
    if short := short_writes(columns):
        from nkitools.history.stale_rows import report_stale_rows

        report_stale_rows(columns, reporter, short)
    report_lost_stores(columns, reporter)
    report_capacity(record, columns, reporter, chip, dialect, spills=spills)
    report_speed(columns, reporter, chip)
    report_unequal_turns(record, reporter)
    if dialect.places_tiles:
        from nkitools.history.unplaceable import report_unplaceable

        report_unplaceable(columns, reporter, chip)
    if dialect.unrolls_loops:
        report_unrolled(columns, reporter)
