"""The answers of a sweep as plain data, for reports: texts and numbers, without rows of the store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from nkitools.sweeps.answers import Answers, PassMap, Row


def plain(answers: Answers) -> dict[str, Any]:
    """Return the answers of one sweep."""
    total = sum(answers.outcomes.values())
    return {
        "kernel": answers.sweep["kernel"],
        "file": answers.sweep["file"],
        "total": total,
        "missing": answers.sweep["wanted"] - total,
        "outcomes": answers.outcomes,
        "left_out": answers.left_out,
        "map": None if answers.map is None else _map(answers.map),
        "clusters": [
            {
                "outcome": each.outcome,
                "what": each.what,
                "count": each.count,
                "case": f"smallest: {case_text(each.smallest)}",
            }
            for each in answers.clusters
        ],
        "fastest": {
            chip: [
                {"time": f"{row['estimate_us']:.4g} us", "error": _number(row["max_error"]), "case": case_text(row)}
                for row in rows
            ]
            for chip, rows in answers.fastest.items()
        },
        "earlier": ""
        if answers.earlier is None
        else time.strftime("%Y-%m-%d %H:%M", time.gmtime(answers.earlier["began"])),
        "regressions": [{"change": _change(old, new), "case": case_text(new)} for old, new in answers.regressions],
    }


def case_text(row: Row) -> str:
    """Return a case in a few words."""
    return ", ".join(f"{name}={value!r}" for name, value in row["values"].items()) + f" on {row['chip']}"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"


def _map(found: PassMap) -> Mapping[str, Any]:
    cells = [[found.cells.get((row, column)) for column in found.columns] for row in found.rows]
    return {"names": found.names, "rows": found.rows, "columns": found.columns, "cells": cells}


def _change(old: Row, new: Row) -> str:
    if new["outcome"] != "pass":
        return f"passed, now {new['outcome']}"
    return f"{old['estimate_us']:.4g} us, now {new['estimate_us']:.4g} us"
