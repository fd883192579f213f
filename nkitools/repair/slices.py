"""The source lines that made some elements of a kernel's outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.run import Run
from nkitools.why.backward import Backward

_ELEMENTS = 4  # of each output: the walk back from all of them takes seconds


def slice_lines(run: Run, masks: Sequence[Array | None]) -> Counter[tuple[str, int]]:
    """Count by source line the instructions that made a few of the elements ``masks``, a mask for each output."""
    found: Counter[tuple[str, int]] = Counter()
    places = [(number, access) for number, record in enumerate(run.all_records) for access in record.outputs]
    for (number, access), mask in zip(places, masks, strict=False):
        if mask is None or mask.shape != access.layout.shape or not mask.any():
            continue
        back = Backward(run)
        back.start(number, access, _some(mask))
        for record, position in back.visits:
            site = back.records[record].site_at(position)
            found[site.file, site.line] += 1
    return found


def _some(mask: Array) -> Array:
    """Return a mask of a few elements of ``mask``: the first, the last, and some between."""
    places = np.flatnonzero(mask)
    found = np.zeros(mask.shape, np.bool_)
    found.reshape(-1)[places[np.linspace(0, places.size - 1, _ELEMENTS).astype(int)]] = True
    return found
