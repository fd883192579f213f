"""The laws of time beside the medians of the profiles that they are fitted to."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.chip.cases import table
from nkitools.facts.laws import profiled

LEAST = 20  # instructions of a row that counts
NEAR = 0.1  # of the median


class Met(NamedTuple):
    """A row of instructions.tsv: what was profiled, and the median beside the law's time; None for no law."""

    what: str
    median_ns: float
    law_ns: float | None
    is_met: bool


def met() -> list[Met]:
    """Return all rows that count: within a tenth of the median, or between the percentiles, the law meets them."""
    found = []
    for row in table("instructions"):
        if not row["count"] or int(row["count"]) < LEAST:
            continue
        cold = " cold" * (row["clock"] == "4/8")
        sides = (f"{row[f'{side}_dtype']} {row[f'{side}_memory']}".replace("- -", "-") for side in ("src", "dst"))
        law = profiled("gen3", row["engine"], row["opcode"], row["function"] + cold, *sides)
        median = float(row["median_ns"])
        mine = None if law is None else law.nanoseconds(float(row["elements"]))
        near = mine is not None and (
            abs(mine / median - 1) <= NEAR or float(row["p10_ns"]) <= mine <= float(row["p90_ns"])
        )
        what = " ".join(row[name] for name in ("engine", "opcode", "function", "elements", "clock"))
        found.append(Met(what, median, mine, near))
    return found
