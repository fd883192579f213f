"""Rules over the loops of a run: those on the device (NK514), and those that the trace unrolls (NK709)."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from nkitools.record.columns import Columns, programs_at
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

# No document states a limit; compilers took hours with so many instructions of one line.
UNROLLED_FAR = 20_000


def report_unequal_turns(record: Record, reporter: Reporter) -> None:
    """Report NK514 for a loop on the device that turns more often on one core than on another.

    Loops inside of such a loop are not reported again.
    """
    turns: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for loop in record.device_loops:
        turns[loop.path][loop.program].append(loop.turns)
    reported: list[tuple[int, ...]] = []
    for path in sorted(turns, key=len):
        if any(path[: len(each)] == each for each in reported):
            continue
        (first, counts), *others = sorted(turns[path].items())
        for program, theirs in others:
            unequal = [pair for pair in zip(counts, theirs, strict=False) if pair[0] != pair[1]]
            if unequal:
                reported.append(path)
                (mine, other), *_ = unequal
                with reporter.placed(record.sites[path[-1]]):
                    report(
                        "NK514",
                        f"this loop on the device turns {_times(mine)} in program {_named(first)} and {_times(other)} "
                        f"in program {_named(program)}",
                    )
                break


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _named(program: tuple[int, ...]) -> str:
    return ", ".join(map(str, program)) or "0"


def report_unrolled(columns: Columns, reporter: Reporter) -> None:
    """Report NK709 for a line that issues very many instructions in one program.

    The turns of a loop on the device count once.
    """
    record, count = columns.record, columns.starts.size
    if count <= UNROLLED_FAR:
        return
    numbers: dict[tuple[int, ...], int] = {}
    taken = [numbers.setdefault(program, len(numbers)) for _, program in record.programs]
    programs = np.array([*taken, 0])[programs_at(record, np.arange(count))]
    issued = columns.sites >= 0
    for loop in record.device_loops:
        again = slice(loop.repeats_from, loop.end)
        issued[again] &= programs[again] != numbers.get(loop.program, -1)
    lines: Counter[tuple[int, str, int]] = Counter()
    places: dict[tuple[str, int], int] = {}
    most_sites = int(columns.sites.max()) + 1
    keys, amounts = np.unique(programs[issued] * most_sites + columns.sites[issued], return_counts=True)
    for key, amount in zip(keys.tolist(), amounts.tolist(), strict=True):
        number, site = divmod(key, most_sites)
        place = record.sites[site].file, record.sites[site].line
        places.setdefault(place, site)
        lines[number, *place] += amount
    for place, site in places.items():
        most = max(lines[number, *place] for number in range(len(numbers) + 1))
        if most > UNROLLED_FAR:
            with reporter.placed(record.sites[site]):
                report(
                    "NK709",
                    f"this line issues {most:,} instructions, as Python's loops and those over nl's ranges are "
                    "unrolled; a loop on the device has one copy of its body",
                )
