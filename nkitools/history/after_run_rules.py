"""The rules over the history of a whole run: judged once all programs have ended."""

from __future__ import annotations

from nkitools.chip.generations import Generation
from nkitools.history.capacity import report_capacity
from nkitools.history.races import report_races
from nkitools.history.speed import report_speed
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter


def judge(record: Record, reporter: Reporter, chip: Generation, *, spills: bool) -> None:
    """NK502 and NK508 of several programs, NK202, NK203 and NK701 to NK704; nothing under ``rules="off"``.

    ``spills``: see `report_capacity`.
    """
    if reporter.level == "off":
        return
    columns = Columns(record)
    if record.keeps_parts:
        report_races(record, columns, reporter)
    report_capacity(record, columns, reporter, chip, spills=spills)
    report_speed(columns, reporter, chip)
