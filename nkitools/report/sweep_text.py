"""The answers of a sweep in a terminal. They come as plain data: the room of sweeps makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_MOST = 10


def sweep_lines(answers: Mapping[str, Any]) -> list[str]:
    """Return the lines of one sweep, see `nkitools.sweeps.plain_answers.plain`."""
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(answers["outcomes"].items()))
    missing = f", {answers['missing']} not run yet" if answers["missing"] else ""
    cases = "1 case" if answers["total"] == 1 else f"{answers['total']} cases"
    lines = [f"{answers['kernel']}: {cases}: {counted}{missing}"]
    if answers["left_out"]:
        lines.append(answers["left_out"])
    if answers["map"] is not None and set(answers["outcomes"]) != {"pass"}:
        lines += ["", *_map_lines(answers["map"])]
    if answers["clusters"]:
        lines += ["", "failures:"]
        lines += [
            f"  {each['count']:>6}  {each['outcome']}: {each['what']}; {each['case']}"
            for each in answers["clusters"][:_MOST]
        ]
        lines += _more(answers["clusters"])
    if answers["fastest"]:
        lines += ["", "fastest, each more exact than those before it:"]
        for chip, cases in answers["fastest"].items():
            lines += [f"  {chip}: {each['time']}, error {each['error']}: {each['case']}" for each in cases[:_MOST]]
            lines += _more(cases)
    if answers["earlier"]:
        lines += ["", f"against the sweep of {answers['earlier']}: {len(answers['regressions'])} worse"]
        lines += [f"  {each['change']}: {each['case']}" for each in answers["regressions"][:_MOST]]
        lines += _more(answers["regressions"])
    return lines


def _more(listed: Sequence[Any]) -> list[str]:
    return [f"  ... and {len(listed) - _MOST} more"] if len(listed) > _MOST else []


def _map_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the map as text: the share of passing cases in per cent, `.` for a cell without cases."""
    shown = [
        [found["cells"][row][column] for column in range(len(found["columns"]))] for row in range(len(found["rows"]))
    ]
    cells = [["." if cell is None else f"{100 * cell[0] // cell[1]}" for cell in row] for row in shown]
    width = max(len(each) for each in [*found["columns"], *(cell for row in cells for cell in row)])
    lead = max(len(each) for each in [*found["rows"], found["names"][0]])
    lines = [f"passing cases in %, {found['names'][0]} down, {found['names'][1]} across:"]
    lines.append("  " + " " * lead + "".join(f"  {each:>{width}}" for each in found["columns"]))
    for name, row in zip(found["rows"], cells, strict=True):
        lines.append(f"  {name:>{lead}}" + "".join(f"  {each:>{width}}" for each in row))
    return lines
