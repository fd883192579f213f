"""NK108 for legacy tiles that fit nowhere: accesses of many partitions begin at different partitions.

The legacy compiler places tiles so that accesses begin at allowed partitions. It cannot do so for two accesses that
need different places: rows 0 to 125 and rows 1 to 126 of one tile, which both must begin at partition 0.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.facts.generations import Generation
from nkitools.record.columns import Columns, distinct
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_REMEDY = "Load the rows once for each shift, each into a tile of its own: nl.load(x[i_p + 1, i_f])."


def report_unplaceable(columns: Columns, reporter: Reporter, chip: Generation) -> None:
    """Report NK108 as a warning, once for a line: at the first access that no place of its tile serves.

    A place must serve the accesses before, too.
    """
    known = {number: LAYOUTS[number] for number in distinct(columns.layouts)}
    shifted = [each for each, layout in known.items() if _is_placed(layout) and layout.start_partition]
    if not shifted:
        return
    engines = columns.of_each_plan(lambda plan: plan.engine != "dma" and not plan.names_only)[columns.positions]
    # How a compiler places masked accesses is not known: they are not checked.
    engines &= ~np.isin(columns.sites, list(columns.record.masked))[columns.positions]
    sites: set[int] = set()
    for storage in distinct(columns.storages[engines & np.isin(columns.layouts, shifted)]):
        mine = np.flatnonzero(engines & (columns.storages == storage))
        _, firsts = np.unique(columns.layouts[mine], return_index=True)
        bases: set[int] | None = None
        for operand in mine[np.sort(firsts)]:
            layout = known[int(columns.layouts[operand])]
            allowed = _bases(layout, chip)
            left = allowed if bases is None else allowed & bases
            if left:
                bases = left
                continue
            site = int(columns.sites[columns.positions[operand]])
            if site not in sites:
                sites.add(site)
                _report(columns.record, reporter, storage, layout, site)


def _is_placed(layout: Layout) -> bool:
    return layout.placed_to_fit and layout.partitions > 1


def _bases(layout: Layout, chip: Generation) -> set[int]:
    """Return the partitions at which a tile may begin so that an access to it begins at an allowed partition."""
    first, count, smallest = layout.start_partition, layout.partitions, chip.start_partition_step
    if count == 1:
        return set(range(chip.partitions))
    step = next((size for size in (smallest, 2 * smallest) if count <= size), chip.partitions)
    return {base for base in range(chip.partitions - first - count + 1) if (base + first) % step == 0}


def _report(record: Record, reporter: Reporter, storage: int, layout: Layout, site: int) -> None:
    known, name = record.storages[storage], record.name_of(storage)
    whose = f"`{name}`" if name else "a tile"
    message = (
        f"{whose} ({known.memory}, {known.dtype} {list(known.shape)}) is accessed from partition "
        f"{layout.start_partition} on, {layout.partitions} partitions, and elsewhere from another one: no place of the "
        "tile lets both begin where an engine may"
    )
    with reporter.placed(record.sites[site]):
        report("NK108", message, remedy=_REMEDY, severity="warning")
