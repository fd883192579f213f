"""Copies that bring a result elsewhere at once: the compiler lets the instruction that makes it write there.

A copy of a tile that nothing else reads takes no time of its own. Published variants of an attention with such a copy
are as fast as those without it.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.timing.operations import Operations


def forwarded(operations: Operations, targets: Array, sources: Array) -> Array:
    """Return the positions of the copies that only bring a result elsewhere.

    The result is a tile that one instruction of the Vector or the Scalar Engine has written and nothing else reads.
    Each instruction of ``targets`` reads what that of ``sources`` has written; others than the record's stand for
    arguments and for what other ranks send.
    """
    columns = operations.columns
    count = columns.plans.size
    found = operations.copies
    if not found.size:
        return found
    firsts, storages = columns.first_operands[:-1], columns.storages
    numbers, uses = np.unique(storages, return_counts=True)
    found = found[uses[np.searchsorted(numbers, storages[firsts[found] + 1])] == 2]
    makes = np.zeros(count + 1, np.bool_)  # the last one is that of other records
    makes[operations.on_engines("vector", "scalar")] = True
    read = np.isin(targets, found)
    targets, sources = targets[read], sources[read]
    made = makes[np.where((sources >= 0) & (sources < count), sources, count)]
    by_engines, others = (np.bincount(targets[each], minlength=count)[found] for each in (made, ~made))
    return np.asarray(found[(by_engines == 1) & (others == 0)])
