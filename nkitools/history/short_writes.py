"""Writes to tiles on chip that are shorter than their line's write before: only these leave stale values (NK511)."""

from __future__ import annotations

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.record.columns import Columns

_MOST = 20_000  # instructions of a run that is checked


def short_writes(columns: Columns) -> list[int]:
    """Return the positions of writes to tiles on chip that are shorter than their line's write before."""
    writes = np.flatnonzero(columns.writes)
    if not writes.size or columns.starts.size > _MOST:
        return []
    layouts, positions = columns.layouts[writes], columns.positions[writes]
    most_sites = int(columns.sites.max(initial=0)) + 2
    keys = columns.storages[writes].astype(np.int64) * most_sites + columns.sites[positions] + 1
    order = np.argsort(keys, kind="stable")
    keys, layouts = keys[order], layouts[order]
    at = np.flatnonzero((keys[1:] == keys[:-1]) & (layouts[1:] != layouts[:-1]))
    pairs = zip(layouts[at].tolist(), layouts[at + 1].tolist(), positions[order[at + 1]].tolist(), strict=True)
    return [
        position
        for before, after, position in pairs
        if LAYOUTS[after].on_chip and LAYOUTS[after].elements < LAYOUTS[before].elements
    ]
