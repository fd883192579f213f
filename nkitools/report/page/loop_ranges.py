"""The kinds of ranges of the loops around each line (``affine_range``, ``range``, ...)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkitools.record.columns import Columns
from nkitools.report.page.named import Named


def ranges_by_place(columns: Sequence[Columns], named: Named) -> dict[int, dict[str, str]]:
    """Return for each place the kinds of ranges of the loops around it, by the names of their counters.

    A line that is called from loops of several kinds has all of them.
    """
    found: dict[int, dict[str, dict[str, None]]] = {}
    for each in columns:
        record = each.record
        # The states of one entry into a loop have one kind.
        entries = np.searchsorted(np.array(record.loop_states.firsts, np.int64), np.array(record.states), "right")
        keys = np.unique(each.sites * (len(record.loop_states.firsts) + 1) + entries)
        for site, entry in zip(
            *(part.tolist() for part in np.divmod(keys, len(record.loop_states.firsts) + 1)), strict=True
        ):
            around = record.ranges_of(record.loop_states.firsts[entry - 1]) if entry else {}
            names = found.setdefault(named.place(record.sites[site]), {})
            for name, called in around.items():
                if called:
                    names.setdefault(name, {})[called] = None
    return {
        place: {name: " or ".join(kinds) for name, kinds in names.items()} for place, names in found.items() if names
    }
