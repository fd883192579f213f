"""The time of the tensors that the compiler is foreseen to move to HBM and back (`nkitools.history.spills`).

On NeuronCore-v3 such a kernel takes the time of its busiest engine and that of the bytes that spill at 400 GB/s, one
after the other, or what it takes without them where that is longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.history.spills import Spilled
from nkitools.record.time_estimate import TensorTraffic
from nkitools.timing.durations import LEFT_OUT

if TYPE_CHECKING:
    from nkitools.record.record import Record


def spilled_traffic(records: Sequence[Record], spilled: Sequence[Sequence[Spilled]]) -> Iterator[TensorTraffic]:
    """Yield the traffic of the tensors that spill, those of one name in one record together."""
    for record, mine in zip(records, spilled, strict=True):
        named: dict[str, list[Spilled]] = {}
        for each in mine:
            named.setdefault(record.name_of(each.storage), []).append(each)
        for name, members in named.items():
            known = [record.storages[each.storage] for each in members]
            yield TensorTraffic(
                tensor=name,
                nbytes=sum(prod(each.shape) * as_dtype(each.dtype).itemsize for each in known),
                read_bytes=sum(each.loaded for each in members),
                written_bytes=sum(each.stored for each in members),
                spilled=True,
            )


def time_with_spills(
    records: Sequence[Record], spilled: Sequence[Sequence[Spilled]], busy_us: Array, chip: Generation
) -> float:
    """Return the microseconds that the slowest core needs at least, 0 where nothing spills; ``busy_us``: by core."""
    spills, first = np.zeros(len(busy_us)), 0
    for record, mine in zip(records, spilled, strict=True):
        for each in mine:
            spills[first + each.owner] += each.nbytes / chip.spill_bytes_per_second * 1e6
        first += max(1, len({program for _, program in record.programs}))
    return float(np.max(np.where(spills > 0, busy_us[:, :LEFT_OUT].max(1) + spills, 0.0)))
