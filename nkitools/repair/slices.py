"""The lines of a kernel that some elements of its outputs were made at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkitools.chip.numerics import Array
from nkitools.record.run import Run
from nkitools.why.backward import Backward


def slice_lines(run: Run, masks: Sequence[Array | None]) -> Counter[tuple[str, int]]:
    """Return the lines on the way back from some elements of the outputs of a run."""
    found: Counter[tuple[str, int]] = Counter()
    places = [(number, access) for number, record in enumerate(run.all_records) for access in record.outputs]
    for (number, access), mask in zip(places, masks, strict=False):
        if mask is None or mask.shape != access.layout.shape or not mask.any():
            continue
        back = Backward(run)
        back.start(number, access, mask)
        for record, position in back.visits:
            site = back.records[record].site_at(position)
            found[site.file, site.line] += 1
    return found
